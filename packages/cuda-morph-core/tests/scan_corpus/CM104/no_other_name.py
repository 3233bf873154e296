def f(language, extension):
    return language == "cuda" or extension == "cuda"
