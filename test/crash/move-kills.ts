/**
 * A large data folder is moved to Postgres by the real command, which is killed several times on its way: at the end both sides must
 * be complete and equal. As a script: `node test/crash/move-kills.ts <jobs> <GiB of files>`.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { openBlake3 } from '../../lib/files/blake3.ts'
import { silentLog } from '../../lib/log.ts'
import { createClient } from '../../lib/postgres/driver.ts'
import { openFsBlobs } from '../../src/adapters/blobs/fs/fs-blobs.ts'
import { openSqliteRecords } from '../../src/adapters/store/sqlite/transfer/sqlite-records.ts'
import { RECORD_KINDS, type RecordName } from '../../src/adapters/store/transfer/record-kinds.ts'
import type { RecordTarget } from '../../src/domain/transfer/move-records.ts'
import type { RecordRow, RecordValue } from '../../src/domain/transfer/record-kinds.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { startPostgres, TEST_PASSWORD, withoutPassword } from '../support/postgres/postgres-server.ts'

interface MoveOptions {
  readonly url: string
  readonly jobs: number
  readonly files: number
  readonly fileBytes: number
  readonly kills: number
  say?(line: string): void
}

const NOW = new Date()
const DAY = 86_400_000
const WRITE_ROWS = 2000
const LOOK_EVERY_MS = 20

/** The output of the run that came to its end. */
export async function moveWithKills(options: MoveOptions): Promise<string> {
  const { url, kills, say = () => {} } = options
  const root = await mkdtemp(join(tmpdir(), 'atelier-move-kills-'))
  try {
    const from = join(root, 'data')
    await fill(from, options)
    say('filled')
    const args = ['move', '--from', from, '--to', withoutPassword(url), '--data-dir', join(root, 'bytes')]
    const env = { ATELIER_SECRET_KEY: 'ab'.repeat(32), PGPASSWORD: TEST_PASSWORD }
    for (let kill = 1; kill <= kills; kill++) {
      const killed = await runAtelier(args, {
        env,
        onStart: (child) => {
          untilMoved(url, Math.floor((options.jobs * kill) / (kills + 1)), () => child.exitCode !== null).then(() =>
            child.kill('SIGKILL'),
          )
        },
      })
      assert.equal(killed.code, null, `it was killed on its way: ${killed.stdout}${killed.stderr}`)
      say(`killed ${kill} times`)
    }
    const { code, stdout, stderr } = await runAtelier(args, { env })
    assert.equal(code, 0, stderr)
    return stdout
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Resolves when so many jobs have arrived, or there is nobody left to move them. */
async function untilMoved(url: string, jobs: number, isOver: () => boolean): Promise<void> {
  const client = createClient({ url })
  await client.connect()
  try {
    while (!isOver()) {
      // Before the migrations there is no such table.
      const found = await client.query<{ count: string }>('SELECT count(*) FROM job_done').catch(() => null)
      if (Number(found?.rows[0]?.count ?? 0) >= jobs) return
      await pause(LOOK_EVERY_MS)
    }
  } finally {
    await client.end()
  }
}

async function fill(directory: string, { jobs, files, fileBytes }: MoveOptions): Promise<void> {
  using records = openSqliteRecords(directory, NOW)
  const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3: await openBlake3(), log: silentLog })
  const hashes: string[] = []
  for (let index = 0; index < files; index++) {
    const pending = await blobs.receive(Readable.from([randomBytes(fileBytes)]), {
      maxBytes: fileBytes,
    })
    await pending.keep()
    hashes.push(pending.hash)
  }
  await write(records, 'account', [
    { id: 'local', max_running: 1_000_000, max_queued: 10_000_000, served: 1, share_percent: 100 },
  ])
  for (let from = 0; from < jobs; from += WRITE_ROWS) {
    const numbers = Array.from({ length: Math.min(WRITE_ROWS, jobs - from) }, (_, index) => from + index + 1)
    await write(records, 'job', numbers.map(toJob))
    await write(records, 'job_label', numbers.map(toLabel))
    await write(
      records,
      'output',
      numbers.map((number) => toOutput(number, hashes[number % hashes.length] ?? '', fileBytes)),
    )
  }
  await records.derive()
  await records.open()
}

type Sample = Readonly<Record<string, RecordValue>>

async function write(records: RecordTarget, name: RecordName, samples: readonly Sample[]): Promise<void> {
  const kind = RECORD_KINDS.find((each) => each.name === name) ?? assert.fail(name)
  const rows: RecordRow[] = samples.map((sample) => kind.columns.map((column) => sample[column] ?? null))
  await records.write(kind, rows, { moveId: 'filling', kind: null, key: null })
}

/** Spread over the whole range of ids, as random ones would be. */
function idOf(number: number): string {
  const digest = createHash('sha256').update(String(number)).digest('hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

const expiryOf = (number: number) => NOW.getTime() + DAY * (1 + (number % 6))

function toJob(number: number): Sample {
  // Most have ended; some wait.
  const isLive = number % 10 === 0
  return {
    ...{ id: idOf(number), seq: number, account_id: 'local', pool: 'default', status: isLive ? 'queued' : 'succeeded' },
    ...{ priority: 0, attempt: isLive ? 0 : 1, version: 3, created_at: number, started_at: isLive ? null : number + 1 },
    ...{ completed_at: isLive ? null : number + 2, expires_at: expiryOf(number), needs_extra_data: 0, input_count: 0 },
    ...{
      output_count: 1,
      outputs_reused: 0,
      outputs_replaced: 0,
      needs: '',
      engine_id: 'embedded',
      engine_losses: 0,
      output_types: 0,
    },
    ...{ metadata: `{"number":"${number}"}`, progress: null, error: null, is_hidden: 0 },
    workflow: JSON.stringify({ '1': { class_type: 'KSampler', inputs: { seed: number, text: 'x'.repeat(1500) } } }),
    ...(isLive ? {} : { log_text: `line ${number}`, log_truncated: 0, log_captured_at: number, log_complete: 1 }),
  }
}

function toLabel(number: number): Sample {
  return {
    ...{ account_id: 'local', key: 'number', value: String(number), created_at: number, job_id: idOf(number) },
    expires_at: expiryOf(number),
  }
}

function toOutput(number: number, hash: string, sizeBytes: number): Sample {
  return {
    ...{ id: idOf(-number), seq: number, account_id: 'local', job_id: idOf(number), position: 0, node_id: '9' },
    ...{ name: `${number}.png`, type: 'output', content_type: 'image/png', size_bytes: sizeBytes, hash },
    ...{ file_path: `${number}.png`, subfolder: null, created_at: number, expires_at: expiryOf(number) },
  }
}

if (import.meta.main) {
  const [jobs = 100_000, gibibytes = 10] = process.argv.slice(2).map(Number)
  await using server = await startPostgres({ isDurable: true })
  const fileBytes = 4 * 2 ** 20
  const say = (line: string) => void process.stdout.write(`${new Date().toISOString()} ${line}\n`)
  say(`${jobs} jobs, ${gibibytes} GiB`)
  const files = Math.max(1, Math.round((gibibytes * 2 ** 30) / fileBytes))
  say(await moveWithKills({ url: server.url, jobs, files, fileBytes, kills: 2, say }))
}
