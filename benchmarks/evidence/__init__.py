"""The evidence: every peer on every data set, one record a fit, all texts made from the records.

Read `sets` and `generated` for the data, `methods`, `ours` and `peers` for what is compared,
`measures` for what is measured, `plans` and `running` for what is run, `ranks`, `questions` and
`report` for what the records say. ``python -m benchmarks.evidence --help`` is the command.
"""
