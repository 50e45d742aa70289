"""Files of keystrokes: key events, presses and releases, snapshots, ProgSnap2."""
