"""The plane of a run as a picture: event time across, processing time up, drawn as SVG and PNG."""

from penstock.picture.inputs import Watched, of_case
from penstock.picture.png import png
from penstock.picture.svg import Look, svg

__all__ = ["Look", "Watched", "of_case", "png", "svg"]
