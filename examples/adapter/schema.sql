-- The tree, its sessions and its rules. Every request of the adapter is one
-- statement, so that it is atomic, and a client that stops in the middle of one
-- holds nobody up.

-- The last revision that was given. It only rises.
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL);
INSERT OR IGNORE INTO clock VALUES (1, 1);

-- A session lives as long as it has a row. beat counts its heartbeats; timeout is
-- in nanoseconds.
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, timeout INTEGER NOT NULL, beat INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;

-- owner is the session of an ephemeral node, '' of a persistent one.
CREATE TABLE IF NOT EXISTS nodes (
  path TEXT PRIMARY KEY, parent TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
  created INTEGER NOT NULL, modified INTEGER NOT NULL, owner TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS nodes_parent ON nodes (parent, path);
CREATE INDEX IF NOT EXISTS nodes_owner ON nodes (owner) WHERE owner <> '';
INSERT OR IGNORE INTO nodes VALUES ('/', '', x'', 0, 1, 1, '');

-- However a session ends, its ephemeral nodes go with it, in one step.
CREATE TRIGGER IF NOT EXISTS session_end AFTER DELETE ON sessions BEGIN
  UPDATE clock SET revision = revision + 1 WHERE EXISTS (SELECT 1 FROM nodes WHERE owner = OLD.id AND owner <> '');
  DELETE FROM nodes WHERE owner = OLD.id AND owner <> '';
END;

-- A commit is one INSERT into this view, a row for each operation, kind being a
-- registry.OpKind. The trigger sees what the rows before have done, and what it
-- raises undoes all of them: "3: node exists" is operation 3.
CREATE VIEW IF NOT EXISTS ops (i, session, kind, path, parent, value, version) AS
  SELECT 0, '', 0, '', '', x'', 0 WHERE 0;

CREATE TRIGGER IF NOT EXISTS op INSTEAD OF INSERT ON ops BEGIN
  SELECT RAISE(ABORT, 'refused 0: session') WHERE NEW.session <> ''
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = NEW.session);

  SELECT RAISE(ABORT, 'refused ' || NEW.i || ': ' || reason) FROM (SELECT CASE
    WHEN NEW.kind IN (2, 3) THEN CASE
      WHEN EXISTS (SELECT 1 FROM nodes WHERE path = NEW.path) THEN 'exists'
      WHEN NOT EXISTS (SELECT 1 FROM nodes WHERE path = NEW.parent) THEN 'no parent'
      WHEN (SELECT owner FROM nodes WHERE path = NEW.parent) <> '' THEN 'ephemeral parent' END
    WHEN NOT EXISTS (SELECT 1 FROM nodes WHERE path = NEW.path) THEN 'not found'
    WHEN NEW.version NOT IN (-1, (SELECT version FROM nodes WHERE path = NEW.path)) THEN 'version'
    WHEN NEW.kind = 5 AND EXISTS (SELECT 1 FROM nodes WHERE parent = NEW.path) THEN 'not empty'
  END AS reason) WHERE reason IS NOT NULL;

  UPDATE clock SET revision = revision + 1 WHERE NEW.i = 0; -- one revision for all
  INSERT INTO nodes SELECT NEW.path, NEW.parent, coalesce(NEW.value, x''), 0, revision, revision,
    iif(NEW.kind = 3, NEW.session, '') FROM clock WHERE NEW.kind IN (2, 3);
  UPDATE nodes SET value = coalesce(NEW.value, x''), version = version + 1,
    modified = (SELECT revision FROM clock) WHERE NEW.kind = 4 AND path = NEW.path;
  DELETE FROM nodes WHERE NEW.kind = 5 AND path = NEW.path;
END;
