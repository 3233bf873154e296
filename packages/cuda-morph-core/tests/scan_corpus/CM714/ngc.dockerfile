#: next CM714
FROM nvcr.io/nvidia/pytorch:24.05-py3 AS base
