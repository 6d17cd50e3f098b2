"""An extension of vLLM's workers as an RL framework would install it.

It counts the runs of the model, with which the tests compare windows.
"""


class FrameworkExtension:
    """Mixed into vLLM's worker through `worker_extension_cls`."""

    def framework_begin(self):
        """Count from now on."""
        inner = type(self).execute_model
        self.framework_steps = 0

        def counted(*args, **kwargs):
            self.framework_steps += 1
            return inner(self, *args, **kwargs)

        self.execute_model = counted
        return "counting"

    def framework_count(self):
        """Return how often the model has run."""
        return self.framework_steps

    def framework_update_weights(self):
        """Load weights, as a trainer does after its update."""
        model = self.model_runner.model
        model.load_weights(iter(()))
        return "loaded"

    def framework_fail(self):
        """Exit like a worker that runs out of memory."""
        import os

        os._exit(137)
