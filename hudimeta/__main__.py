"""`python -m hudimeta`: the same as the console script `hudimeta`."""

from hudimeta.cli.start import main

if __name__ == "__main__":
    main()
