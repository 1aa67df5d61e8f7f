"""Helpers that read values from figures."""

from artifact_records import SAMPLERS


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def line_of(axis, name):
    """The line with the label ``name`` in the legend."""
    return next(line for line in axis.lines if line.get_label() == name)


def labels_of(axis):
    return [line.get_label() for line in axis.lines]


def line_points(axis, tuner):
    """The dots of a tuner."""
    found = [container.lines[0] for container in axis.containers if container.get_label() == tuner]
    return [point for line in found for point in line.get_xydata()]


def regret_at(axis, tuner, sampler):
    """The regret of a tuner in the row of a sampler, from the position of its dot."""
    row = SAMPLERS.index(sampler)
    return next(x for x, y in line_points(axis, tuner) if abs(y - row) < 0.5)
