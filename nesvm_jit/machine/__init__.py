"""Classifiers of any number of classes, composed of binary problems."""
