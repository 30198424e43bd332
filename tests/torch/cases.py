"""Functions that are tests of one file, and what they found."""

import contextlib
import traceback

from tangram_torch.errors import PlanError, SettingsError


class Cases:
    def __init__(self):
        self._functions, self._failures, self._place = [], [], ""

    def __call__(self, function):
        self._functions.append(function)
        return function

    @contextlib.contextmanager
    def within(self, place):
        before, self._place = self._place, f"{self._place}{place}: "
        yield
        self._place = before

    def check(self, good, what):
        if not good:
            self._failures.append(self._place + what)

    def equal(self, got, right, what):
        self.check(got == right, f"{what} is {got!r:.300}, not {right!r:.300}")

    def run(self, wanted):
        good, functions = 0, [f for f in self._functions if not wanted or f.__name__ in wanted]
        for function in functions:
            self._failures, self._place = [], ""
            try:
                function()
            except Exception:
                self._failures.append(self._place + traceback.format_exc())
            print(f"{'FAILED' if self._failures else 'ok'}: {function.__name__.replace('_', ' ')}", flush=True)
            for failure in self._failures[:8]:
                print("  " + failure, flush=True)
            good += not self._failures
        print(f"{good} of {len(functions)} tests")
        return 0 if functions and good == len(functions) else 1


def refused(test, call, *parts):
    """The error of a call has all these parts."""
    try:
        call()
    except (PlanError, SettingsError) as error:
        for part in parts:
            test.check(part in str(error), f"{str(error)!r} does not say {part!r}")
    else:
        test.check(False, f"nothing was refused that should be for {parts[0]!r}")
