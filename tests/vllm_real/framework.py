"""What an RL framework brings: an extension of vLLM's workers of its own.

It counts the runs of the model by itself, which is what the windows are compared with.
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
        """Bring new weights, as a trainer does after its update."""
        model = self.model_runner.model
        model.load_weights(iter(()))
        return "loaded"

    def framework_fail(self):
        """Die as a worker does for lack of memory."""
        import os

        os._exit(137)
