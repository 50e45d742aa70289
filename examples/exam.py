# %% [markdown]
# # Share how hard the tasks of an exam were
#
# A notebook kept as a plain script: cells begin with `# %%`, and editors such as VS Code, Spyder and PyCharm
# run them one by one. `jupytext --to notebook exam.py` makes a notebook of it. All students here are simulated.

# %%
import numpy as np

import understudy as us

sitting = us.Exam(n_learners=120, n_items=20).simulate(np.random.default_rng(1))
sitting.responses

# %% [markdown]
# Your own answers come from a file: `us.read_responses("exam.csv")` reads a row per student and a column per
# task. Names of students are forgotten when it is read.
#
# Difficulties are differentially private for a student with all their answers. Data in memory has no folder, so
# declare whose data it is and where its ledger is kept, or that it is simulated.

# %%
released = us.difficulties(sitting.responses, epsilon=1, simulated=True, out="difficulties.json")
released

# %%
released.plot()

# %% [markdown]
# The file holds each difficulty with its standard error, the guarantee, and what the ledger noted. How close is
# the noisy order to the true one, which only a simulation knows?

# %%
estimated = [item.difficulty for item in released.items]
print(np.corrcoef(estimated, sitting.difficulty)[0, 1])
print(released.guarantee)

# %% [markdown]
# A student combines the released difficulties with their own answers, on their own side: this needs no further
# data about the class, and costs nothing.

# %%
student = sitting.responses.select([0])
report = us.ability("difficulties.json", student)
report

# %%
report.to_frame()
