-- Webhooks: who is told, what is to be told, and what came of each try. Rows of `webhook_delivery` are written by the triggers below,
-- in the transaction that makes them true, whichever statement that is. A job without `hook` costs the comparison with null.

CREATE TABLE webhook_endpoint (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- account: made by its owner. job: came with a job or a call, and shared by all that name the same. operator: of the configuration.
  kind TEXT NOT NULL,
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  -- With a space before and behind each name, so that one of them is found as a text.
  events TEXT NOT NULL,
  -- Sealed; null: the common secret of its account.
  secret BLOB,
  previous_secret BLOB,
  previous_until INTEGER,
  -- enabled, paused (by its owner), disabled (by the service, which says why)
  state TEXT NOT NULL,
  reason TEXT,
  disabled_at INTEGER,
  -- Since when nothing has arrived; null: the latest try arrived.
  failing_since INTEGER,
  -- Told of `credits.low` below this balance, in micro-dollars; null: never.
  low_mark INTEGER,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_endpoint_account ON webhook_endpoint (account_id, created_at, id) WHERE kind = 'account';
CREATE INDEX webhook_endpoint_unused ON webhook_endpoint (used_at) WHERE kind = 'job';

CREATE TABLE webhook_delivery (
  -- The order in which things became true.
  seq INTEGER PRIMARY KEY,
  -- Sent with every try.
  id TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  type TEXT NOT NULL,
  -- The job or the call: messages about one of them arrive in order.
  subject TEXT NOT NULL,
  at INTEGER NOT NULL,
  -- JSON: what was true then.
  facts TEXT NOT NULL,
  -- pending, delivered, failed
  state TEXT NOT NULL DEFAULT 'pending',
  attempts INTEGER NOT NULL DEFAULT 0,
  -- When the tries began that count against the time in which one must arrive.
  first_at INTEGER,
  -- The next try; while one is under way, when its lease lapses.
  next_at INTEGER NOT NULL,
  lease_id TEXT,
  ended_at INTEGER
) STRICT;

CREATE UNIQUE INDEX webhook_delivery_id ON webhook_delivery (id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint_id, next_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_order ON webhook_delivery (endpoint_id, subject, seq) WHERE state = 'pending';
CREATE INDEX webhook_delivery_leased ON webhook_delivery (endpoint_id) WHERE lease_id IS NOT NULL;
CREATE INDEX webhook_delivery_listing ON webhook_delivery (account_id, seq);
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, seq);
CREATE INDEX webhook_delivery_subject ON webhook_delivery (subject, seq);
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempt (
  delivery_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  took_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  -- null: no answer began.
  status INTEGER,
  -- The beginning of the answer's body.
  response TEXT,
  PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;

-- null: nobody is to be told. '': the endpoints of the account. Else also this endpoint, which came with the job.
ALTER TABLE job ADD COLUMN hook TEXT;
ALTER TABLE router_call ADD COLUMN hook TEXT;
-- Of jobs and calls that bring an endpoint, and of no others.
CREATE INDEX job_hook ON job (hook) WHERE hook > '';
CREATE INDEX router_call_hook ON router_call (hook) WHERE hook > '';
-- The highest mark of the account's endpoints; null: none asks.
ALTER TABLE credit_account ADD COLUMN low_mark INTEGER;

CREATE VIEW webhook_job_facts AS
SELECT seq, json_object('status', status, 'created_at', created_at, 'started_at', started_at, 'completed_at', completed_at,
  'expires_at', expires_at, 'attempt', attempt, 'metadata', json(coalesce(metadata, '{}')), 'error', json(error),
  'output_count', output_count, 'outputs', json(iif(completed_at IS NULL, '[]', (
    SELECT json_group_array(json_object('id', asset_id, 'node_id', node_id, 'name', name, 'type', type,
      'content_type', content_type, 'size_bytes', size_bytes, 'hash', hash))
    FROM (SELECT * FROM job_output AS listed WHERE listed.seq = job.seq ORDER BY position LIMIT 100))))) AS facts
FROM job;

CREATE TRIGGER webhook_job_queued AFTER INSERT ON job WHEN NEW.hook IS NOT NULL AND NEW.status = 'queued'
BEGIN
  INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
  SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, NEW.account_id, 'job.queued', NEW.id, NEW.created_at,
    (SELECT facts FROM webhook_job_facts WHERE seq = NEW.seq), NEW.created_at
  FROM webhook_endpoint AS endpoint
  WHERE endpoint.id IN (
      SELECT NEW.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = NEW.account_id AND kind = 'account')
    AND endpoint.state = 'enabled' AND instr(endpoint.events, ' job.queued ') > 0;
END;

-- A job that failed without an error was withdrawn before its submit was answered: nobody knows of it.
CREATE TRIGGER webhook_job_moved AFTER UPDATE OF status ON job
WHEN NEW.hook IS NOT NULL AND NEW.status <> OLD.status
  AND NEW.status IN ('running', 'succeeded', 'failed', 'canceled', 'expired')
  AND (NEW.status <> 'failed' OR NEW.error IS NOT NULL)
BEGIN
  INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
  SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, NEW.account_id, moved.type, NEW.id,
    coalesce(NEW.completed_at, NEW.started_at), (SELECT facts FROM webhook_job_facts WHERE seq = NEW.seq),
    coalesce(NEW.completed_at, NEW.started_at)
  FROM webhook_endpoint AS endpoint
  JOIN (SELECT 'job.' || iif(NEW.status = 'running', 'started', NEW.status) AS type) AS moved
  WHERE endpoint.id IN (
      SELECT NEW.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = NEW.account_id AND kind = 'account')
    AND endpoint.state = 'enabled' AND instr(endpoint.events, ' ' || moved.type || ' ') > 0;
END;

CREATE TRIGGER webhook_output_created AFTER UPDATE OF output_count ON job
WHEN NEW.hook IS NOT NULL AND NEW.output_count > OLD.output_count
BEGIN
  INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
  SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, NEW.account_id, 'output.created', NEW.id, asset.created_at,
    json_object('id', made.asset_id, 'node_id', made.node_id, 'name', made.name, 'type', made.type,
      'content_type', made.content_type, 'size_bytes', made.size_bytes, 'hash', made.hash), asset.created_at
  FROM job_output AS made JOIN asset ON asset.id = made.asset_id JOIN webhook_endpoint AS endpoint
  WHERE made.seq = NEW.seq AND made.position >= OLD.output_count AND made.position < NEW.output_count
    AND endpoint.id IN (
      SELECT NEW.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = NEW.account_id AND kind = 'account')
    AND endpoint.state = 'enabled' AND instr(endpoint.events, ' output.created ') > 0
  ORDER BY made.position;
END;

CREATE TRIGGER webhook_call_completed AFTER UPDATE OF state ON router_call
WHEN NEW.hook IS NOT NULL AND NEW.queued = 1 AND OLD.state IN ('waiting', 'running')
  AND NEW.state IN ('done', 'interrupted', 'unusable', 'canceled')
BEGIN
  INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
  SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, NEW.account_id, 'model_call.completed', NEW.id, told.at,
    json_object('model', NEW.model, 'state', NEW.state, 'created_at', NEW.created_at, 'started_at', NEW.started_at,
      'completed_at', told.at, 'refusal', json(told.refusal), 'content_type', told.content_type,
      'size_bytes', told.size_bytes, 'cost_micros', told.cost_micros), told.at
  FROM webhook_endpoint AS endpoint
  JOIN (
    SELECT coalesce(max(finished_at), CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS at, max(refusal) AS refusal,
      max(content_type) AS content_type, max(size_bytes) AS size_bytes, max(cost_micros) AS cost_micros
    FROM router_result WHERE seq = NEW.seq) AS told
  WHERE endpoint.id IN (
      SELECT NEW.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = NEW.account_id AND kind = 'account')
    AND endpoint.state = 'enabled' AND instr(endpoint.events, ' model_call.completed ') > 0;
END;

-- What is held counts as there: a balance falls by what is charged, not with every job that begins.
CREATE TRIGGER webhook_credits_low AFTER UPDATE OF available, held ON credit_account
WHEN NEW.low_mark IS NOT NULL AND NEW.available + NEW.held < NEW.low_mark
  AND NEW.available + NEW.held < OLD.available + OLD.held
BEGIN
  INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
  SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, NEW.account_id, 'credits.low', 'credits', told.at,
    json_object('balance_micros', NEW.available + NEW.held, 'mark_micros', endpoint.low_mark), told.at
  FROM webhook_endpoint AS endpoint JOIN (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS at) AS told
  WHERE endpoint.account_id = NEW.account_id AND endpoint.kind = 'account' AND endpoint.state = 'enabled'
    AND instr(endpoint.events, ' credits.low ') > 0
    AND NEW.available + NEW.held < endpoint.low_mark AND OLD.available + OLD.held >= endpoint.low_mark;
END;
