"""Rights: who a caller is, and what it may do; below every door and every statement.

    credentials   who presents what, to a Principal: tokens, passwords, sessions
    sessions      tokens of logins, signed with a key that the lake keeps
    granted       what one user may do, worked out of its grants, its roles' and everybody's
    shown         the catalog cut down to what a user may read, for listings

Spec: HTTP, Authentication; SQL, Users, roles, grants, tokens.
"""
