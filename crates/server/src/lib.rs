//! PostgreSQL's protocol and HTTP in front of a database.
