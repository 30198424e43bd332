"""What a user can be told. Nothing here needs PyTorch."""


class PlanError(Exception):
    """The plan cannot be run: str() says why."""


class SettingsError(Exception):
    """The run cannot begin: str() says what to change."""
