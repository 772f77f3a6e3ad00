"""The ways to corrupt a candidate: by operators, earlier bodies, a model or a rewrite, or in a group."""
