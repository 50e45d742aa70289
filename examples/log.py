# %% [markdown]
# # Share a log of learners' actions
#
# A notebook kept as a plain script: cells begin with `# %%`, and editors such as VS Code, Spyder and PyCharm
# run them one by one. `jupytext --to notebook log.py` makes a notebook of it. All learners here are simulated.

# %%
import numpy as np

import understudy as us
from understudy.logs.study import StudyOptions

rng = np.random.default_rng(1)
classroom = us.Classroom(n_learners=60, n_actions=8)
log = classroom.simulate(rng)
log

# %% [markdown]
# Your own data comes from a file (`us.read_log("log.csv")`) or from any data frame. Names of learners are
# forgotten when it is read.

# %%
frame = log.to_pandas("pupil-")
log = us.Interactions.from_frame(frame, learner="learner", action="action", outcome="outcome").declare()
us.inspect(log)

# %% [markdown]
# A generator learns from the log and draws learners who do not exist. Fitting charges nothing: the generator and
# its sample carry their guarantee and the words "not charged to a ledger".

# %%
generator = us.MarkovDP(epsilon=8).fit(log)
print(generator)
fake = generator.sample()
fake.to_pandas().head()

# %% [markdown]
# What does the synthetic log give away? Every attack ranks learners whom the generator saw (members) and others
# (outsiders); 0.5 is guessing. The result is computed from real learners and stays inside.

# %%
half = rng.permutation(log.n_learners)
members, outsiders = log.select(half[:30]), log.select(half[30:])
report = us.audit(members, outsiders, us.Markov().fit(members).sample())
report

# %%
report.plot()

# %% [markdown]
# A study compares generators, yours among them: any object with `fit` and `sample`. One seed and 8 shadows make it
# quick; 3 seeds and 64 shadows are the default.


# %%
class Shuffled:
    """Learners of the usual length, whose rows are drawn from all rows."""

    name = "shuffled"

    def fit(self, log):
        rows = log.to_pandas()
        self.counts_ = rows.groupby(["action", "outcome"], as_index=False).size()
        self.length_, self.n_learners_ = len(rows) // log.n_learners, log.n_learners

    def sample(self, n_learners=None, rng=None):
        n_learners = self.n_learners_ if n_learners is None else n_learners
        rows = self.counts_.sample(
            n_learners * self.length_, replace=True, weights="size", random_state=rng, ignore_index=True
        )
        rows["learner"] = [f"s{place}" for place in range(n_learners) for _ in range(self.length_)]
        return rows[["learner", "action", "outcome"]]


us.check_generator(Shuffled())
found = us.study(log, ["markov", us.MarkovDP(epsilon=8), Shuffled()], StudyOptions(n_seeds=1, n_shadows=8))
found

# %%
found.plot()

# %% [markdown]
# `synthesize` and `release` charge the ledger, exactly as the commands do. Data in memory has no folder, so say
# whose data it is, or that it is simulated, and where its ledger is kept.

# %%
made = us.release(log, "bundle", epsilon=8, simulated=True, ledger="simulated.ledger")
made
