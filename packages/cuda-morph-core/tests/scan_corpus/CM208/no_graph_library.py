from mylib import graph

graph.capture("cuda graph")
