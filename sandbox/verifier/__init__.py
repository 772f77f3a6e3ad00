"""The verifier bundle, which judges trees and gists as gistpoint does where it is not installed."""
