-- The tree, its sessions and its rules, all in one schema of the database. Every
-- request of the adapter is one statement, so that it is atomic, takes one round trip
-- and holds nobody up when its client stops in the middle.
--
-- Steps are serialised by the row of clock, which each one locks first. So revisions
-- become visible in their order, and what a statement reads after that is what
-- all steps before have left (the level is READ COMMITTED: each statement looks anew).

CREATE SCHEMA IF NOT EXISTS elasticron;

-- format is that of this file; the revision is the last that was given.
CREATE TABLE elasticron.clock (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), format integer NOT NULL, revision bigint NOT NULL
) WITH (fillfactor = 10);

-- A session lives as long as it has a row. beat counts its heartbeats; timeout is in
-- nanoseconds.
CREATE TABLE elasticron.sessions (
  id text COLLATE "C" PRIMARY KEY, timeout bigint NOT NULL, beat bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

-- owner is the session of an ephemeral node, '' of a persistent one.
CREATE TABLE elasticron.nodes (
  path text COLLATE "C" PRIMARY KEY, parent text COLLATE "C" NOT NULL, value bytea NOT NULL, version bigint NOT NULL,
  created bigint NOT NULL, modified bigint NOT NULL, owner text COLLATE "C" NOT NULL
);
CREATE INDEX nodes_parent ON elasticron.nodes (parent);
CREATE INDEX nodes_owner ON elasticron.nodes (owner) WHERE owner <> '';

-- durable makes the answer of this transaction outlive a crash, and wait for synchronous
-- standbys, whatever the client's default is.
CREATE FUNCTION elasticron.durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- rise gives the next revision, and locks the clock until the end of the transaction.
CREATE FUNCTION elasticron.rise() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  risen bigint;
BEGIN
  PERFORM elasticron.durable();
  UPDATE elasticron.clock SET revision = revision + 1 RETURNING revision INTO risen;
  RETURN risen;
END $$;

-- ring tells those who listen of a step: its revision and the paths that it wrote,
-- a line each, or an asterisk for more than a notification holds.
CREATE FUNCTION elasticron.ring(revision bigint, paths text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  written text := array_to_string(revision::text || paths, E'\n');
BEGIN
  IF octet_length(written) > 7900 THEN
    written := revision || E'\n*';
  END IF;
  PERFORM pg_notify('elasticron', written);
END $$;

-- step applies operations of a session, or of nobody (''), kinds being those of
-- registry.OpKind. It returns the revision, or which operation was refused and why; then nothing was applied.
-- A refusal is no error of the statement: it belongs into nobody's log.
CREATE FUNCTION elasticron.step(
  session text, kinds integer[], paths text[], parents text[], contents bytea[], versions bigint[],
  OUT revision bigint, OUT refused integer, OUT reason text
) LANGUAGE plpgsql AS $$
DECLARE
  node elasticron.nodes;
  present boolean;
  above text;
  written text[] := '{}';
BEGIN
  refused := 0;
  BEGIN
    revision := elasticron.rise();
    IF session <> '' AND NOT EXISTS (SELECT FROM elasticron.sessions WHERE id = session) THEN
      RAISE EXCEPTION USING ERRCODE = 'EJ001', MESSAGE = 'session';
    END IF;
    FOR i IN 1 .. cardinality(kinds) LOOP
      refused := i - 1;
      SELECT * INTO node FROM elasticron.nodes WHERE path = paths[i];
      present := FOUND;
      IF kinds[i] IN (2, 3) THEN
        SELECT owner INTO above FROM elasticron.nodes WHERE path = parents[i];
        reason := CASE
          WHEN present THEN 'exists'
          WHEN above IS NULL THEN 'no parent'
          WHEN above <> '' THEN 'ephemeral parent' END;
      ELSE
        reason := CASE
          WHEN NOT present THEN 'not found'
          WHEN versions[i] NOT IN (-1, node.version) THEN 'version'
          WHEN kinds[i] = 5 AND EXISTS (SELECT FROM elasticron.nodes WHERE parent = paths[i]) THEN 'not empty' END;
      END IF;
      IF reason IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'EJ001', MESSAGE = reason;
      END IF;
      IF kinds[i] IN (2, 3) THEN
        INSERT INTO elasticron.nodes VALUES (
          paths[i], parents[i], contents[i], 0, revision, revision, CASE kinds[i] WHEN 3 THEN session ELSE '' END);
      ELSIF kinds[i] = 4 THEN
        UPDATE elasticron.nodes SET value = contents[i], version = node.version + 1, modified = step.revision WHERE path = paths[i];
      ELSIF kinds[i] = 5 THEN
        DELETE FROM elasticron.nodes WHERE path = paths[i];
      END IF;
      IF kinds[i] <> 1 THEN
        written := written || paths[i];
      END IF;
    END LOOP;
    PERFORM elasticron.ring(revision, written);
  EXCEPTION WHEN SQLSTATE 'EJ001' THEN
    revision := 0;
    reason := SQLERRM;
  END;
END $$;

-- heartbeat raises the counter of a session and returns the revision, or 0 without such a
-- session. A counter that a crash set back could stand where somebody saw it before.
CREATE FUNCTION elasticron.heartbeat(session text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM elasticron.durable();
  UPDATE elasticron.sessions SET beat = beat + 1 WHERE id = session;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  RETURN (SELECT revision FROM elasticron.clock);
END $$;

-- finish ends a session whose counter is stands, or any if that is -1, and
-- removes its nodes.
CREATE FUNCTION elasticron.finish(session text, stands bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  gone text[];
BEGIN
  IF NOT EXISTS (SELECT FROM elasticron.sessions WHERE id = session AND stands IN (beat, -1)) THEN
    RETURN;
  END IF;
  PERFORM FROM elasticron.clock FOR UPDATE;
  DELETE FROM elasticron.sessions WHERE id = session AND stands IN (beat, -1);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  WITH removed AS (DELETE FROM elasticron.nodes WHERE owner = session AND owner <> '' RETURNING path)
    SELECT array_agg(path) INTO gone FROM removed;
  IF gone IS NOT NULL THEN
    PERFORM elasticron.ring(elasticron.rise(), gone);
  END IF;
END $$;

INSERT INTO elasticron.nodes VALUES ('/', '', '', 0, 1, 1, '');
INSERT INTO elasticron.clock (format, revision) VALUES (1, 1);
