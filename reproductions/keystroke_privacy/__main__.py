"""`python -m reproductions.keystroke_privacy`: the experiments of the thesis on a file of keystrokes."""

from reproductions.command import new_app, run
from reproductions.keystroke_privacy.sweep import sweep

app = new_app("Coarse typing as in Leinonen (2016).")
app.command()(sweep)

if __name__ == "__main__":
    run(app)
