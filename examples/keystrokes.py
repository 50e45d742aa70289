# %% [markdown]
# # Open a keystroke data set
#
# A notebook kept as a plain script: cells begin with `# %%`, and editors such as VS Code, Spyder and PyCharm
# run them one by one. `jupytext --to notebook keystrokes.py` makes a notebook of it. All typists are simulated.

# %%
import subprocess
import sys

import understudy as us

simulate = ["simulate", "course.csv", "--shape", "typing", "--learners", "12"]
subprocess.run([sys.executable, "-m", "understudy", *simulate], check=True)

# %% [markdown]
# Your own data is a table of key events, JSON lines, snapshots of programs or a ProgSnap2 folder. The command
# above left a mark next to the file that says that its learners are simulated, so no budget is spent.

# %%
course = us.keystrokes.read("course.csv")
course

# %% [markdown]
# How coarse do the times have to be before the strongest attack does no better than guessing? The sweep tries
# several sizes. One step and few learners make it quick; leave the settings out for your own data. The result is
# computed from real learners and stays inside.

# %%
found = us.keystrokes.sweep(course, largest=300, step=300, trained_step=300, guesses="1,3")
found

# %%
found.to_frame()

# %%
found.plot()

# %% [markdown]
# Coarse events carry no formal guarantee, and the ledger notes that they were released.

# %%
coarse = us.keystrokes.coarsen(course, bucket=300, out="coarse.csv")
coarse

# %% [markdown]
# Statistics of groups have a guarantee. Digraphs and bounds are declared, because looking them up in the data
# would reveal something about learners. A dozen learners are too few: the means are lost in the noise.

# %%
statistics = us.keystrokes.statistics(course, ["t h", "h e", "i n"], epsilon=2)
statistics

# %%
statistics.to_frame()
