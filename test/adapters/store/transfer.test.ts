/** Every kind of record, with every value that its columns may have, is the same in both stores. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSession } from '../../../src/adapters/store/postgres/database/session.ts'
import { openPostgresRecords } from '../../../src/adapters/store/postgres/transfer/postgres-records.ts'
import { openSqliteRecords } from '../../../src/adapters/store/sqlite/transfer/sqlite-records.ts'
import { RECORD_KINDS, type RecordName } from '../../../src/adapters/store/transfer/record-kinds.ts'
import { MoveError, moveRecords, type RecordTarget } from '../../../src/domain/transfer/move-records.ts'
import type { RecordRow, RecordValue } from '../../../src/domain/transfer/record-kinds.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

const NOW = new Date('2026-05-05T00:00:00Z')
const DAY = 86_400_000
const [LIVE, DONE, HIDDEN] = ['01', '02', '03'].map((end) => `00000000-0000-7000-8000-0000000000${end}`)
const HASH = 'ab'.repeat(32)
const bytes = (text: string) => new Uint8Array(Buffer.from(text))

type Sample = Readonly<Record<string, RecordValue>>

const JOB: Sample = {
  ...{ account_id: 'ann', pool: 'default', priority: -3, attempt: 2, version: 9, created_at: 1000, started_at: 1500 },
  ...{
    expires_at: 5 * DAY,
    needs_extra_data: 0,
    input_count: 0,
    output_count: 1,
    outputs_reused: 1,
    outputs_replaced: 4,
  },
  ...{ needs: '', engine_id: 'gpu', engine_losses: 0, price_second: null, price_minimum: null, is_hidden: 0 },
  ...{ metadata: '{"a":"ü"}', progress: '{"value":0.5}', error: null, workflow: '{"1":{"seed":18446744073709551615}}' },
  ...{ workflow_id: null, submission: null, run: null, log_text: null, log_truncated: null, log_captured_at: null },
  ...{ log_complete: null, log_marks: null, sealed: null, notes: null, completed_at: null },
  ...{
    recipe: 'r1',
    code: null,
    attempts: null,
    title: 'Postcard',
    not_before: null,
    queue_until: null,
    output_types: 0,
    origin: '{"key":"k"}',
    hook: null,
    reused_from: null,
  },
}

const BATCH = '01900000-0000-7000-8000-0000000000ba'

const SAMPLES: Readonly<Record<Exclude<RecordName, 'account_storage'>, readonly Sample[]>> = {
  meta: [{ key: 'blobs_id', value: 'an id' }],
  account: [
    { id: 'ann', max_running: 3, max_queued: 100, served: 17, share_percent: 250 },
    { id: 'local', max_running: 1_000_000, max_queued: 10, served: 0, share_percent: 100 },
  ],
  account_profile: [
    { account_id: 'ann', name: 'Ann', tier: 'pro', overrides: '{}', status: 'active', created_at: 1, version: 2 },
  ],
  api_key: [
    {
      ...{ id: 'k1', account_id: 'ann', name: 'ci', scopes: null, created_at: 1, expires_at: null, revoked_at: 5 },
      ...{ last_used_at: 4, digest: bytes('digest'), previous_digest: null, previous_until: null, version: 7 },
      endpoints: '["poster"]',
    },
  ],
  deployment: [
    {
      ...{ id: 'demo', account_id: null, state: 'ready', workers: 2, idle_after: 60_000, created_at: 1, changed_at: 2 },
      version: 3,
    },
  ],
  released_deployment: [
    {
      ...{ id: 'dep-abc', account_id: 'ann', build_id: 'b1', name: 'live', gpu_class: 'h200', region: 'local' },
      ...{ min_workers: 0, max_workers: 2, status: 'ready', stop_reason: null, error: null, revision: 3 },
      ...{ release_id: 'rel', release_version: 2, pending: null, progress: null, created_by: 'ann', created_at: 1 },
      ...{ updated_at: 2, deleted_at: null, deleted_by: null, version: 9 },
    },
  ],
  deployment_revision: [
    {
      ...{ deployment_id: 'dep-abc', revision: 3, release_id: 'rel', release_version: 2, kind: 'rollback' },
      ...{ from_revision: 1, created_by: 'ann', created_at: 1 },
    },
  ],
  deployment_event: [{ deployment_id: 'dep-abc', n: 1, at: 1, status: 'queued', message: 'waits', release_id: 'rel' }],
  deployment_key: [{ account_id: 'ann', key: 'once', deployment_id: 'dep-abc', created_at: 1 }],
  credit_account: [{ account_id: 'ann', available: 7_000_000, held: 100, floor: -5, low_mark: 900 }],
  ledger_entry: [
    {
      ...{ seq: 4, account_id: 'ann', kind: 'grant', reference: 'g1', granted: -7_000_100, available: 7_000_000 },
      ...{ held: 100, charged: 0, at: 3, memo: 'welcome', pool: null, model: null, key_id: null },
      ...{ endpoint: 'poster', endpoint_version: 2, tag: 'team' },
    },
  ],
  ledger_hold: [
    {
      ...{ id: `job:${LIVE}`, account_id: 'ann', micros: 100, held_at: 3, pool: 'default', model: null, key_id: 'key' },
      ...{ is_agreed: 1, endpoint: 'poster', endpoint_version: 2, tag: null },
    },
  ],
  audit_log: [{ seq: 2, actor: 'me', action: 'grant', subject: 'ann', at: 3, details: '{}', outcome: 'done' }],
  rate_limit: [{ account_id: 'ann', booked_until: 1_700_000_000_000_000 }],
  prompt_number: [{ account_id: 'ann', next: 12 }],
  queue_pause: [{ scope: 'account', name: 'ann', reason: 'upkeep', paused_at: 5_000 }],
  output_number: [{ account_id: 'ann', folder: '', prefix: 'pic', last: 8 }],
  history_clear: [{ account_id: 'ann', at: 99 }],
  endpoint: [
    {
      ...{ account_id: 'ann', name: 'poster', title: 'Poster', description: '', state: 'ready', current_version: 1 },
      ...{
        last_version: 2,
        aliases: '{"stable":1}',
        settings: '{}',
        created_at: 1,
        updated_at: 2,
        revision: 3,
        is_removed: 0,
      },
    },
  ],
  endpoint_caller: [{ caller: 'bob', account_id: 'ann', name: 'poster' }],
  endpoint_version: [
    {
      ...{ account_id: 'ann', name: 'poster', number: 1, hash: 'sha256:00', note: 'the first', created_at: 1 },
      ...{ created_by: null, graph: '{}', inputs: '[{"maximum":18446744073709551615}]', outputs: '[]', required: '{}' },
    },
  ],
  endpoint_share: [
    {
      ...{ id: 's1', account_id: 'ann', name: 'poster', version: 'stable', note: 'blog', limits: '{"runs":5}' },
      ...{ referrers: '["example.com"]', created_at: 1, expires_at: 9, revoked_at: null, created_by: 'k1' },
      digest: bytes('of the link'),
    },
  ],
  schedule: [
    {
      ...{
        id: 'sch-1',
        account_id: 'ann',
        key_id: null,
        name: 'nightly',
        cron: '0 2 * * *',
        time_zone: 'Europe/Berlin',
      },
      ...{ overlap: 'skip', catch_up: 'one', pool: null, state: 'active', reason: null, next_at: 9, last_job_id: null },
      ...{ work: '{"workflow":{"1":{"seed":18446744073709551615}}}', last_error: null, created_at: 1, changed_at: 2 },
      ...{ taken_tick: 9, taken_at: 9, held_until: 10, has_waited: 0 },
    },
  ],
  schedule_run: [
    {
      ...{ schedule_id: 'sch-1', due_at: 8, is_by_hand: 1, at: 8, outcome: 'failed', job_id: null },
      ...{ code: 'queue_full', message: 'full' },
    },
  ],
  bulk_action: [
    {
      ...{ id: 'blk-1', owner_id: 'ann', key_id: 'k1', actor: null, kind: 'rerun', asked: '{"filter":{"code":"x"}}' },
      ...{ only_waiting: 0, priority: null, has_more: 1, idempotency_key: 'once', digest: 'd', total: 2, done: 1 },
      ...{ skipped: 0, refused: 0, parts: 1, state: 'working', reason: null, created_at: 1, changed_at: 2 },
      ...{ ended_at: null, expires_at: 9, lease_id: 'l1', held_until: 3 },
    },
  ],
  bulk_item: [
    {
      ...{ action_id: 'blk-1', place: 1, part: 1, account_id: 'ann', job_id: 'j1', outcome: 'done', made_id: 'j2' },
      ...{ code: null, message: null },
    },
  ],
  build: [
    {
      ...{ id: 'bld-1', account_id: 'ann', name: 'studio', description: null, definition: '{}', created_by: 'k1' },
      ...{ created_at: 1, updated_at: 5, last_version: 3, model_count: 1, pack_count: 2 },
    },
  ],
  build_release: [
    {
      ...{ id: 'rel-1', account_id: 'ann', build_id: 'bld-1', version: 3, content_hash: '00', definition: '{}' },
      ...{ created_by: null, created_at: 4 },
    },
  ],
  build_artifact: [
    {
      ...{ id: 'art-1', release_id: 'rel-1', account_id: 'ann', position: 0, target: 'linux/cpu', status: 'ready' },
      ...{ failure_reason: null, queued_at: 4, started_at: 5, finished_at: 6, attempts: 1, lock: '{}', log_bytes: 6 },
      ...{ archive_sha256: '01', size_bytes: 9, classes: '{"pack":["A"]}', is_log_truncated: 0, builder: 'here' },
    },
  ],
  build_log: [{ artifact_id: 'art-1', position: 0, text: 'start\n' }],
  build_blob: [
    {
      ...{ id: 'blob-1', account_id: 'ann', kind: 'model', filename: 'a.bin', sha256: '02', size_bytes: 3 },
      ...{ created_at: 1, uploaded_at: 2, hash: 'of the bytes', used_at: 4 },
    },
  ],
  build_blob_use: [{ blob_id: 'blob-1', holder: 'rel-1' }],
  user_file: [
    {
      id: 3,
      account_id: 'ann',
      path: 'a.json',
      size_bytes: 3,
      created_at: 1,
      modified_at: 2,
      bytes: bytes('\u0000ab'),
    },
  ],
  job_result: [{ account_id: 'ann', key: 'of a result', job_id: BATCH, run_ms: 250, expires_at: 90_000 }],
  budget: [
    {
      ...{
        account_id: 'ann',
        id: 'b1',
        name: 'day',
        owner: 'operator',
        subject: 'account',
        value: null,
        limit_micros: 5,
      },
      ...{
        unit: 'day',
        style: 'calendar',
        time_zone: 'UTC',
        shares: '[50]',
        is_hard: 1,
        raise_micros: 3,
        raise_until: 9,
      },
      ...{ counts: '{}', created_at: 1, changed_at: 2 },
    },
  ],
  provider_key: [
    { account_id: 'ann', provider: 'bfl', sealed: bytes('\u0001x'), last_four: 'abcd', created_at: 1, changed_at: 2 },
  ],
  run_scope: [{ account_id: 'ann', scope: 'endpoint:poster', tallies: '{}', open: 1, look_at: 64 }],
  run_ticket: [
    { account_id: 'ann', scope: 'endpoint:poster', job_id: LIVE, counted_at: 5, micros: 7, is_withdrawn: 0 },
  ],
  gpu_use: [
    {
      ...{ seq: 7, job_id: LIVE, account_id: 'ann', pool: 'default', engine_id: 'gpu', attempt: 2, ended_at: 5 },
      ...{ ms: 9066, classes: '{"KSampler":9000}', weights: '["a.safetensors"]' },
    },
  ],
  job_recipe: [{ account_id: 'ann', recipe: 'r1', title: 'Postcard', terms: '\nc:KSampler\n', expires_at: 90_000 }],
  idempotency_key: [
    { account_id: 'ann', key: 'k', expires_at: 9, job_id: LIVE, asset_id: null, batch_id: null },
    { account_id: 'ann', key: 'l', expires_at: 9, job_id: null, asset_id: 'up', batch_id: null },
    { account_id: 'ann', key: 'm', expires_at: 9, job_id: null, asset_id: null, batch_id: BATCH },
  ],
  job_batch: [
    {
      ...{ id: BATCH, account_id: 'ann', pool: 'default', created_at: 1, expires_at: 9, is_whole: 1, digest: 'd' },
      ...{ jobs: JSON.stringify([LIVE, null]), refused: '[]', limited_by: 'queue_full' },
    },
  ],
  blob_candidate: [{ hash: HASH, size_bytes: 4, since: 1 }],
  engine_catalog: [{ hash: 'c', text: '{}' }],
  engine: [
    {
      ...{ id: 'gpu', node_id: 'n', held_until: 1, is_shared: 1, catalog_hash: 'c', state: 'ready', concurrency: 2 },
      ...{ about: '{}', seen_at: 5, will: 'cordoned', will_number: 2 },
    },
  ],
  asset: [
    {
      ...{
        id: 'up',
        seq: 20,
        account_id: 'ann',
        hash: HASH,
        size_bytes: 4,
        content_type: 'image/png',
        file_path: null,
      },
      ...{ subfolder: null, tags: '["x"]', created_at: 1, expires_at: null },
      note: '{"name":"n","contentType":null,"tags":null,"metadata":null,"previewId":null,"isHidden":false}',
    },
  ],
  job: [
    {
      ...JOB,
      ...{ priority: -9_999_998, not_before: 60_000, queue_until: 90_000 },
      ...{ id: LIVE, seq: 11, status: 'queued', needs_extra_data: 3, input_count: 1, needs: 'lane', engine_losses: 1 },
      ...{
        price_second: 5,
        price_minimum: 6,
        sealed: bytes('sealed'),
        notes: '{}',
        workflow_id: 'w',
        submission: '{}',
      },
    },
    {
      ...JOB,
      ...{ id: DONE, seq: 12, status: 'failed', completed_at: 2000, error: '{"code":"x"}', run: '{}', log_text: 'log' },
      ...{ output_types: 3 },
      ...{ code: 'x', attempts: '[[1,"gpu1",5,6,"engine_lost"]]', log_marks: '[[0,5,"7"]]' },
      ...{ log_truncated: 1, log_captured_at: 1999, log_complete: 0 },
    },
    { ...JOB, id: HIDDEN, seq: 13, status: 'succeeded', completed_at: 2500, expires_at: 40 * DAY, is_hidden: 1 },
  ],
  job_input: [{ job_id: LIVE, position: 0, name: 'in.png', hash: HASH, size_bytes: 4, content_type: 'image/png' }],
  job_label: [
    { account_id: 'ann', key: 'a', value: 'ü', created_at: 1000, job_id: LIVE, expires_at: 5 * DAY },
    { account_id: 'ann', key: 'a', value: 'ü', created_at: 1000, job_id: HIDDEN, expires_at: 40 * DAY },
  ],
  asset_import: [
    {
      ...{
        id: 'import',
        account_id: 'ann',
        url: 'https://models.example/a',
        name: 'a',
        status: 'failed',
        asset_id: null,
      },
      ...{ bytes_total: 2 ** 33, bytes_done: 5, error: 'gone', created_at: 1, changed_at: 2, expires_at: 3 },
    },
  ],
  output: [
    {
      ...{
        id: 'o1',
        seq: 21,
        account_id: 'ann',
        job_id: DONE,
        position: 0,
        node_id: '9',
        name: 'a.png',
        type: 'output',
      },
      ...{ content_type: 'image/png', size_bytes: 4, hash: HASH, file_path: 'a.png', subfolder: 'sub', created_at: 7 },
      expires_at: 5 * DAY,
      note: '{"name":null,"contentType":null,"tags":["x"],"metadata":null,"previewId":null,"isHidden":true}',
    },
    {
      ...{ id: 'o2', seq: 22, account_id: 'ann', job_id: DONE, position: null, node_id: null, name: null, type: null },
      ...{ content_type: 'image/png', size_bytes: 6, hash: 'cd'.repeat(32), file_path: 'temp/b.png', subfolder: null },
      ...{ created_at: 8, expires_at: 5 * DAY },
      note: null,
    },
  ],
  router_call: [
    {
      ...{ seq: 5, id: 'r1', account_id: 'ann', key: 'k', fingerprint: 'f', queued: 1, state: 'done', model: 'a/b' },
      ...{
        base_url: '',
        created_at: 1,
        expires_at: 2,
        started_at: null,
        attempt: 1,
        hold_micros: null,
        spend_micros: 7,
      },
      ...{
        costly: 0,
        progress: null,
        fence: 4,
        sent: 1,
        stop_asked: 0,
        losses: 2,
        task: 'task-9',
        job_id: null,
        hook: '',
        trace: '00-aa-bb-01',
      },
      ...{ plan: '[]', attempt_index: 1 },
    },
  ],
  router_input: [{ seq: 5, body: bytes('{}'), hash: null, size_bytes: 2 }],
  router_result: [
    {
      ...{ seq: 5, account_id: 'ann', content_type: null, body: null, hash: null, size_bytes: 9, cost_micros: 3 },
      ...{ refusal: '{}', finished_at: 4, replay_until: null, served: '{}' },
    },
  ],
  router_account: [{ account_id: 'ann', running: 0, costly: 0, committed_micros: 0 }],
  webhook_endpoint: [
    {
      ...{ id: 'whe_1', account_id: 'ann', kind: 'account', url: 'https://a.example/h', description: 'ü' },
      ...{ events: ' job.queued ', secret: bytes('sealed'), previous_secret: null, previous_until: null },
      ...{ state: 'enabled', reason: null, disabled_at: null, failing_since: 4, low_mark: 900, created_at: 1 },
      ...{ changed_at: 2, used_at: 3 },
    },
  ],
  // Of what was moved nobody is told again: this is the only message there is afterwards.
  webhook_delivery: [
    {
      ...{ seq: 8, id: 'msg_1', endpoint_id: 'whe_1', account_id: 'ann', type: 'job.queued', subject: LIVE, at: 1000 },
      ...{ facts: '{}', state: 'pending', attempts: 1, first_at: 5, next_at: 6, ended_at: null },
    },
  ],
  webhook_attempt: [
    { delivery_id: 'msg_1', number: 1, at: 5, took_ms: 1, outcome: 'refused', status: 500, response: 'no' },
  ],
  resumable_upload: [
    {
      ...{ id: 'upload', account_id: 'ann', length_bytes: 2 ** 33, fields: '{}', metadata: 'filename YQ==' },
      ...{ place: 'here', hash: null, asset_id: null, created_at: 1, expires_at: 2 },
    },
  ],
}

function rowsOf(name: RecordName): RecordRow[] {
  if (name === 'account_storage') return []
  const { columns } = RECORD_KINDS.find((kind) => kind.name === name) ?? assert.fail(name)
  return SAMPLES[name].map((sample) => {
    assert.deepEqual(Object.keys(sample).toSorted(), [...columns].toSorted(), name)
    return columns.map((column) => sample[column] ?? null)
  })
}

async function fill(target: RecordTarget): Promise<void> {
  const progress = { moveId: 'none', kind: null, key: null }
  for (const kind of RECORD_KINDS) if (kind.isDerived !== true) await target.write(kind, rowsOf(kind.name), progress)
  await target.derive()
  await target.open()
}

async function withFolder(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'atelier-transfer-'))
  try {
    await body(root)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

test('every kind of record survives the way there and back, and what follows from it is made anew', () =>
  withFolder(async (root) => {
    await using database = await createTestDatabase()
    const options = { url: database.url }
    using embedded = openSqliteRecords(join(root, 'data'), NOW)
    await fill(embedded)
    await using remote = await openPostgresRecords(options, NOW)
    const there = await moveRecords(embedded, remote, { now: NOW, movedTo: 'there' })
    for (const { name, rows } of there) {
      const expected = name === 'account_storage' ? 1 : rowsOf(name as RecordName).length
      assert.equal(rows, expected, name)
    }
    const storage = RECORD_KINDS.find(({ name }) => name === 'account_storage') ?? assert.fail('there is such a kind')
    assert.deepEqual(await remote.read(storage, null, 9), [['ann', 4 + 6 + 9]], 'equal bytes once')
    using back = openSqliteRecords(join(root, 'back'), NOW)
    assert.deepEqual(await moveRecords(remote, back, { now: NOW, movedTo: 'back' }), there)
  }))

test('a row that differs is named, and nothing is declared complete', () =>
  withFolder(async (root) => {
    using one = openSqliteRecords(join(root, 'one'), NOW)
    using other = openSqliteRecords(join(root, 'other'), NOW)
    await fill(one)
    const forgetful: RecordTarget = {
      ...other,
      write: (kind, rows, progress) =>
        other.write(kind, kind.name === 'prompt_number' ? rows.map(([id]) => [id ?? null, 13]) : rows, progress),
    }
    await assert.rejects(
      moveRecords(one, forgetful, { now: NOW, movedTo: 'x' }),
      new MoveError('prompt_number ann is not the same on both sides: its next differs'),
    )
    assert.equal((await other.state()).state, 'half_moved')
    assert.equal(await one.readOwn('moved_to'), null)
  }))

test('a database that processes use, or with calls under way, is not moved', async () => {
  await using database = await createTestDatabase()
  const options = { url: database.url }
  {
    await using store = await openPostgresRecords(options, NOW)
    const kind = RECORD_KINDS.find(({ name }) => name === 'router_call') ?? assert.fail('there is such a kind')
    const [row] = rowsOf('router_call')
    const running = row.map((value, index) => (kind.columns[index] === 'state' ? 'running' : value))
    await store.write(kind, [running], { moveId: 'x', kind: null, key: null })
    await assert.rejects(store.settle(NOW), /1 calls of models are under way/)
    const beat = `INSERT INTO node (id, started_at, seen_at, alive_until, about) VALUES ('n', 0, 0, ${NOW.getTime() + 1}, '{}')`
    await using session = await openSession(options)
    await session.client.query(beat)
  }
  await assert.rejects(openPostgresRecords(options, NOW), /1 processes of a service use the database; stop them first/)
})
