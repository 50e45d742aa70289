# %% [markdown]
# # Share the habits of a small cohort
#
# A notebook kept as a plain script: cells begin with `# %%`, and editors such as VS Code, Spyder and PyCharm
# run them one by one. `jupytext --to notebook cohort.py` makes a notebook of it. All learners are simulated.

# %%
import subprocess
import sys

import understudy as us

simulate = ["simulate", "cohort.parquet", "--shape", "cohort", "--learners", "60"]
subprocess.run([sys.executable, "-m", "understudy", *simulate], check=True)

# %% [markdown]
# Your own table comes from a log of events and a list of scores: `us.cohort.build("log.csv", "scores.csv",
# "cohort.toml", "cohort.parquet", term_start="2024-09-02")`. The command above left a mark next to the file that
# says that its learners are simulated, so no budget is spent.

# %%
cohort = us.cohort.read("cohort.parquet")
cohort

# %% [markdown]
# What would a private summary be worth, and what would it cost? The plan spends nothing.

# %%
us.cohort.plan(cohort, epsilon=3)

# %% [markdown]
# The summary is a release: real learners are charged for it, once, in the ledger next to the table.

# %%
summarized = us.cohort.summarize(cohort, epsilon=3, out="summary.json")
summarized

# %%
summarized.plot()

# %% [markdown]
# Programs invent learners from the summary. They see no record, so the guarantee of the summary holds for what they
# make. They run in a sandbox, which needs Linux with bubblewrap.

# %%
try:
    synthesized = us.cohort.synthesize(
        summarized.summary, n_learners=60, per_panelist=100, out="synthetic.csv"
    )
    synthetic = {"synthetic.csv": synthesized.cohort}
except us.MissingError as error:
    print(error)
    synthetic = {}

# %% [markdown]
# How good is it? The comparison is measured on the real learners and stays inside. One seed, few rows and no shadows
# make it quick.

# %%
found = us.cohort.compare(cohort, n_seeds=1, n_shadows=0, per_panelist=100, synthetic=synthetic)
found

# %%
found.plot()
