"""The figures of a report, each made from columns of spans, or from the manifest."""
