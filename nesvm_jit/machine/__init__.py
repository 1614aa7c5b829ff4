"""Classifiers of any number of classes, made of binary problems."""
