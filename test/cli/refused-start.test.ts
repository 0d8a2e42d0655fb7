/** Starts that no repetition can mend: one line says what is wrong and what to do, the code is 2, and `doctor` says the same. */
import assert from 'node:assert/strict'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { findNatsProgram, startNats } from '../support/bus/nats-server.ts'
import { runInProcess } from '../support/cli/in-process.ts'
import { createTestDatabase } from '../support/postgres/test-database.ts'
import { type FakeS3, startFakeS3 } from '../support/s3/fake-s3.ts'

const found = findNatsProgram()
const program = 'program' in found ? found.program : ''
const skip = 'missing' in found ? found.missing : false

let fake: FakeS3
interface Refusal {
  /** What `serve` prints. */
  readonly line: string
  /** What `doctor` prints about this part, with its remedy. */
  readonly finding: string
}

const SECRETS = ['wrong-secret', 'wrong-token', 'wJalrXUtnFEMI', 'ab'.repeat(32)]

async function refusedStart(part: string, settings: Readonly<Record<string, string>>): Promise<Refusal> {
  await using database = await createTestDatabase()
  using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-refused-'))
  const env = { ATELIER_DATABASE: database.url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ...settings }
  const run = (...args: string[]) => runInProcess(args, { cwd: folder.path, env })
  const { code, stderr } = await run('serve', '--port', '0', '--workers', '0', '--log-level', 'error')
  const doctor = await run('doctor', '--port', '0')
  for (const secret of SECRETS)
    for (const said of [stderr, doctor.stdout, doctor.stderr]) assert.ok(!said.includes(secret), said)
  assert.equal(code, 2, stderr)
  assert.match(stderr, /^atelier: [^\n]+\n$/)
  const lines = doctor.stdout.split('\n')
  const at = lines.findIndex((line) => new RegExp(`^fail +${part} `).test(line))
  return { line: stderr.trim(), finding: lines.slice(at, at + 2).join(' ') }
}

const inBucket = (address: Readonly<Record<string, string>>, keys: string | null) => {
  const url = new URL(fake.blobsUrl)
  for (const [name, value] of Object.entries(address)) url.searchParams.set(name, value)
  return { ATELIER_BLOBS: url.href, ...(keys !== null && { ATELIER_BLOBS_KEYS: keys }) }
}

describe('a start that cannot succeed', () => {
  before(async () => {
    // Nothing of this machine may give keys.
    process.env['AWS_EC2_METADATA_DISABLED'] = 'true'
    process.env['AWS_SHARED_CREDENTIALS_FILE'] = process.env['AWS_CONFIG_FILE'] = '/nowhere/keys'
    fake = await startFakeS3({ region: 'eu-central-1' })
  })
  after(async () => {
    await fake[Symbol.asyncDispose]()
  })

  test('a bucket that cannot be used as it is configured refuses the start in one line', async () => {
    const [id = ''] = fake.keys.split(':')
    const passed = fake.issue(new Date(0))
    const live = fake.issue(new Date(Date.now() + 3_600_000))
    const cases: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
      [
        'another secret',
        inBucket({}, `${id}:wrong-secret`),
        /the secret does not belong to the key id; set ATELIER_BLOBS_KEYS/,
      ],
      ['an unknown id', inBucket({}, 'AKIDUNKNOWN:wrong-secret'), /does not know the key id; set ATELIER_BLOBS_KEYS/],
      [
        'a session that is over',
        inBucket({}, `${passed.id}:${passed.secret}:${passed.token}`),
        /the session of the keys is over/,
      ],
      [
        'another token',
        inBucket({}, `${live.id}:${live.secret}:wrong-token`),
        /the session of the keys is over, or its token is wrong/,
      ],
      ['another region', inBucket({ region: 'us-east-1' }, fake.keys), /in another region; set region=eu-central-1/],
      [
        'no bucket',
        { ...inBucket({}, fake.keys), ATELIER_BLOBS: fake.blobsUrl.replace('test-bytes', 'no-bytes') },
        /there is no such bucket; create it/,
      ],
      ['no keys', inBucket({}, null), /no keys were found.*set ATELIER_BLOBS_KEYS.*or give this process a role/],
    ]
    for (const [name, settings, expected] of cases) {
      const { line, finding } = await refusedStart('bucket', settings)
      assert.match(line, expected, name)
      assert.match(line, /^atelier: blobs names s3:\/\/(test|no)-bytes\//, name)
      const [fault = ''] = expected.source.split(/;|\.\*/)
      assert.match(finding, new RegExp(fault), name)
    }
  })

  test('rights that the keys lack refuse the start as well', async () => {
    for (const operation of ['get', 'put'] as const) {
      fake.objects.clear()
      await using own = await createTestDatabase()
      fake.fail(operation, { kind: 'status', status: 403, code: 'AccessDenied' })
      using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-refused-'))
      const env = { ATELIER_DATABASE: own.url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ...inBucket({}, fake.keys) }
      const { code, stderr } = await runInProcess(['serve', '--port', '0'], { cwd: folder.path, env })
      assert.deepEqual([code, stderr.split('\n').length], [2, 2], stderr)
      assert.match(stderr, /the keys are not allowed to use it \(AccessDenied\); let them get, put, delete and list/)
    }
  })

  test('commands that read or fill the bucket say the same', async () => {
    await using database = await createTestDatabase()
    using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-refused-'))
    const { ATELIER_BLOBS: blobs } = inBucket({}, null)
    const env = { ATELIER_DATABASE: database.url, ATELIER_BLOBS_KEYS: `${fake.keys}-wrong` }
    for (const args of [
      ['verify', '--blobs', blobs],
      ['move', '--from', folder.path, '--to', blobs],
    ]) {
      const { code, stderr } = await runInProcess(args, { cwd: folder.path, env })
      assert.equal(code, 2, stderr)
      assert.match(stderr, /^atelier: blobs names s3:[^\n]+the secret does not belong to the key id; [^\n]+\n$/)
    }
  })

  test('verify of a storage that does not answer ends with one line', async () => {
    await using database = await createTestDatabase()
    using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-refused-'))
    const env = { ATELIER_DATABASE: database.url, ...inBucket({ endpoint: 'http://127.0.0.1:9' }, fake.keys) }
    assert.equal((await runInProcess(['migrate'], { cwd: folder.path, env })).code, 0)
    const { code, stderr } = await runInProcess(['verify'], { cwd: folder.path, env })
    assert.equal(code, 1, stderr)
    assert.match(stderr, /^atelier: [^\n]+cannot be reached[^\n]*\n$/)
  })

  test('NATS servers that never let this process in refuse the start in one line', { skip }, async () => {
    await using nats = await startNats(program)
    const { url } = nats
    const cases: readonly (readonly [string, RegExp])[] = [
      [url.replace(/\/\/.*@/, '//wrong-token@'), /the servers refuse the token; correct it in ATELIER_BUS/],
      [url.replace(/\/\/.*@/, '//ann:wrong-secret@'), /the servers refuse the user and the password; correct/],
      [url.replace(/\/\/.*@/, '//'), /the servers want credentials; set ATELIER_BUS/],
      [url.replace(/\?.*/, ''), /not from an authority that is trusted here .*; name your own authority/],
    ]
    for (const [bus, expected] of cases) {
      const { line, finding } = await refusedStart('bus', { ATELIER_BUS: bus })
      assert.match(line, expected)
      assert.match(line, /^atelier: bus names 127\.0\.0\.1:\d+, but /)
      assert.match(finding, new RegExp(expected.source.split(';')[0] ?? ''))
    }
  })

  test('storage that does not answer is no mistake of the operator: the start fails, and may be repeated', async () => {
    await using database = await createTestDatabase()
    using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-refused-'))
    fake.isDown = true
    const env = { ATELIER_DATABASE: database.url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ...inBucket({}, fake.keys) }
    const { code, stderr } = await runInProcess(['serve', '--port', '0'], { cwd: folder.path, env })
    fake.isDown = false
    assert.equal(code, 1, stderr)
    assert.match(stderr, /^atelier: cannot start: The stored bytes in s3:.* cannot be reached/)
  })
})
