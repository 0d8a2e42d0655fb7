/** Keys of sessions: how they sign, when they are renewed, and where they come from. The storage checks every signature and token. */
import assert from 'node:assert/strict'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { silentLog } from '../../../lib/log.ts'
import { createAwsKeys } from '../../../src/adapters/blobs/s3/aws-keys.ts'
import { createBucket } from '../../../src/adapters/blobs/s3/bucket.ts'
import { type BucketKeys, createKeySource } from '../../../src/adapters/blobs/s3/bucket-keys.ts'
import { toSendable } from '../../../src/adapters/blobs/s3/parts.ts'
import { openS3Client } from '../../../src/adapters/blobs/s3/s3-client.ts'
import { S3Error, toStorageError } from '../../../src/adapters/blobs/s3/s3-error.ts'
import { readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { type FakeS3, startFakeS3 } from '../../support/s3/fake-s3.ts'
import { type KeyGivers, ROLE, startKeyGivers } from '../../support/s3/key-givers.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** A bucket whose keys come from `load`, on a clock that the test moves; the storage's clock goes with it. */
function openOn(fake: FakeS3, load: () => Promise<BucketKeys>) {
  const time = { aheadMs: 0 }
  const now = () => new Date(Date.now() + time.aheadMs)
  const keys = createKeySource({ load, now, log: silentLog })
  const address = { endpoint: fake.url, publicEndpoint: fake.url, bucket: fake.bucket, region: 'us-east-1' }
  const client = openS3Client({ address: { ...address, isPathStyle: true }, keys, now })
  return {
    bucket: createBucket(client, { firstPauseMs: 1, maxPauseMs: 2 }),
    now,
    pass(ms: number) {
      time.aheadMs += ms
      fake.skewMs += ms
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

/** Gives keys for so long each time it is asked. */
function countingSource(fake: FakeS3, lifetimeMs = HOUR_MS) {
  const source = {
    asked: 0,
    isAway: false,
    async load(): Promise<BucketKeys> {
      source.asked++
      if (source.isAway) throw new Error('nobody is there')
      return fake.issue(new Date(Date.now() + fake.skewMs + lifetimeMs))
    },
  }
  return source
}

test('whatever stands in a name or an answer, keys with any secret and token sign it as the storage checks it', async () => {
  await using fake = await startFakeS3()
  const name = fc.stringMatching(/^[A-Za-z0-9!_.*()-]{1,20}$/).filter((text) => !/^\.+$/.test(text))
  const disposition = fc
    .string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 })
    .map((text) => `inline; x="${text}"`)
  await fc.assert(
    fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 4 }), disposition, async (names, said) => {
      const issued = fake.issue(new Date(Date.now() + HOUR_MS))
      await using opened = openOn(fake, async () => issued)
      const { bucket } = opened
      const key = names.join('/')
      await bucket.put(key, toSendable(key))
      assert.equal((await bucket.read(key))?.toString(), key)
      assert.equal(await bucket.sizeOf(key), Buffer.byteLength(key))
      const listed: string[] = []
      for await (const page of bucket.list(key)) listed.push(...page.map((each) => each.key))
      assert.ok(listed.includes(key))
      const query = { 'response-content-disposition': said, 'response-content-type': 'image/png' }
      const address = await bucket.presign('GET', key, { query, lifetimeSeconds: 60 })
      const { pathname, search } = new URL(address)
      const isSafe = /^[\x20-\x7e]*$/.test(said)
      const answer = await fetch(new URL(`${pathname}${search}`, fake.url))
      if (isSafe) assert.equal(answer.status, 200, await answer.text())
      else await answer.body?.cancel()
      assert.notEqual(answer.status, 403)
    }),
    { numRuns: 60, seed: 7 },
  )
})

test('many requests with keys that the storage no longer takes fetch new ones once, and all succeed', async () => {
  await using fake = await startFakeS3()
  const source = countingSource(fake)
  await using opened = openOn(fake, () => source.load())
  const { bucket } = opened
  await bucket.put('a', toSendable('text'))
  // The storage alone knows that the session is over, as when it was revoked.
  fake.skewMs += 2 * HOUR_MS
  fake.asked.length = 0
  await Promise.all([
    bucket.put('b', toSendable('more')),
    bucket.read('a'),
    bucket.sizeOf('a'),
    bucket.get('a', null).then(({ body }) => readAll(body)),
    ...Array.from({ length: 20 }, (_, index) => bucket.put(`c${index}`, toSendable('many'))),
  ])
  assert.equal(source.asked, 2)
  assert.equal(fake.objects.get('b')?.bytes.toString(), 'more')
})

test('a request whose new keys are refused as well fails after one more try', async () => {
  await using fake = await startFakeS3()
  let asked = 0
  await using opened = openOn(fake, async () => ({
    ...fake.issue(new Date(0)),
    expiresAt: null,
    id: `ASIA${++asked}EXAMPLE`,
  }))
  await assert.rejects(opened.bucket.put('a', toSendable('text')), (error) => error instanceof S3Error)
  assert.deepEqual([asked, fake.asked.length], [2, 2])
})

test('keys are renewed before they pass, while requests go on with the old ones', async () => {
  await using fake = await startFakeS3()
  const source = countingSource(fake)
  await using opened = openOn(fake, () => source.load())
  const { bucket, pass } = opened
  await bucket.put('a', toSendable('text'))
  pass(HOUR_MS - 5 * MINUTE_MS)
  await Promise.all([bucket.read('a'), bucket.read('a')])
  assert.equal(source.asked, 2)
  pass(10 * MINUTE_MS)
  await bucket.read('a')
  assert.deepEqual([source.asked, new Set(fake.asked).has('get')], [2, true])
})

test('while nobody gives keys those that are good are used to their end, then the storage is unavailable until somebody does', async () => {
  await using fake = await startFakeS3()
  const source = countingSource(fake)
  await using opened = openOn(fake, () => source.load())
  const { bucket, pass } = opened
  await bucket.put('a', toSendable('text'))
  source.isAway = true
  pass(HOUR_MS - 5 * MINUTE_MS)
  assert.equal((await bucket.read('a'))?.toString(), 'text')
  pass(6 * MINUTE_MS)
  const refusal = await bucket.read('a').then(
    () => assert.fail('keys that have passed were taken'),
    (error: unknown) => error,
  )
  assert.ok(refusedWith('store_unavailable')(toStorageError(refusal) as Error))
  source.isAway = false
  assert.equal((await bucket.read('a'))?.toString(), 'text')
})

test('an address that is given away says how long it is good: never longer than the keys that signed it', async () => {
  await using fake = await startFakeS3()
  const source = countingSource(fake, 15 * MINUTE_MS)
  await using opened = openOn(fake, () => source.load())
  const { bucket, pass } = opened
  await bucket.put('a', toSendable('text'))
  const sign = async () => {
    const address = await bucket.presign('GET', 'a', { query: {}, lifetimeSeconds: 3600 })
    return { address, seconds: Number(new URL(address).searchParams.get('X-Amz-Expires')) }
  }
  const first = await sign()
  assert.ok(first.seconds > 14 * 60 && first.seconds <= 15 * 60, String(first.seconds))
  assert.equal((await fetch(first.address)).status, 200)
  source.isAway = true
  pass(14 * MINUTE_MS)
  const last = await sign()
  assert.ok(last.seconds >= 1 && last.seconds <= 60, String(last.seconds))
  assert.equal((await fetch(last.address)).status, 200)
  pass(2 * MINUTE_MS)
  assert.deepEqual([(await fetch(first.address)).status, (await fetch(last.address)).status], [403, 403])
  source.isAway = false
  assert.equal((await fetch((await sign()).address)).status, 200)
})

/** Runs with exactly these `AWS_…` variables, which the library reads from the process itself. */
async function withVariables(variables: Readonly<Record<string, string>>, work: () => Promise<void>): Promise<void> {
  using home = mkdtempDisposableSync(join(tmpdir(), 'atelier-home-'))
  const before = { ...process.env }
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, { HOME: home.path, AWS_EC2_METADATA_DISABLED: 'true', ...variables })
  try {
    await work()
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
  }
}

interface Place {
  readonly fake: FakeS3
  readonly givers: KeyGivers
  /** A file with this text. */
  file(name: string, text: string): string
}

async function startPlace() {
  await using opening = new AsyncDisposableStack()
  const fake = opening.use(await startFakeS3())
  const givers = opening.use(await startKeyGivers(() => fake.issue(new Date(Date.now() + fake.skewMs + HOUR_MS))))
  const folder = opening.use(mkdtempDisposableSync(join(tmpdir(), 'atelier-keys-')))
  const file = (name: string, text: string) => {
    writeFileSync(join(folder.path, name), text)
    return join(folder.path, name)
  }
  const all = opening.move()
  return { fake, givers, file, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

const SOURCES: Readonly<Record<string, (place: Place) => Readonly<Record<string, string>>>> = {
  'the environment': ({ fake }) => {
    const { id, secret, token } = fake.issue(new Date(Date.now() + HOUR_MS))
    return { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token }
  },
  'a profile': ({ fake, file }) => {
    const { id, secret, token } = fake.issue(new Date(Date.now() + HOUR_MS))
    const text = `[shop]\naws_access_key_id = ${id}\naws_secret_access_key = ${secret}\naws_session_token = ${token}\n`
    return { AWS_SHARED_CREDENTIALS_FILE: file('credentials', text), AWS_PROFILE: 'shop' }
  },
  'a web identity': ({ givers, file }) => ({
    AWS_ENDPOINT_URL_STS: givers.url,
    AWS_ROLE_ARN: ROLE,
    AWS_WEB_IDENTITY_TOKEN_FILE: file('token', givers.secret),
  }),
  'a container': ({ givers, file }) => ({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${givers.url}/container`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file('token', givers.secret),
  }),
  'the machine': ({ givers }) => ({
    AWS_EC2_METADATA_DISABLED: 'false',
    AWS_EC2_METADATA_SERVICE_ENDPOINT: givers.url,
  }),
}

for (const [name, toVariables] of Object.entries(SOURCES)) {
  test(`keys of ${name} open the bucket`, async () => {
    await using place = await startPlace()
    await withVariables(toVariables(place), async () => {
      await using opened = openOn(place.fake, createAwsKeys(silentLog))
      await opened.bucket.put('a', toSendable('text'))
      assert.equal((await opened.bucket.read('a'))?.toString(), 'text')
      if (place.givers.asked.length === 0) return
      const asked = place.givers.asked.length
      place.fake.skewMs += 2 * HOUR_MS
      assert.equal((await opened.bucket.read('a'))?.toString(), 'text', 'and are renewed when they have passed')
      assert.equal(place.givers.asked.length, 2 * asked)
    })
  })
}

test('a token file that is replaced is read again when keys are renewed', async () => {
  await using place = await startPlace()
  await withVariables(SOURCES['a web identity']?.(place) ?? {}, async () => {
    await using opened = openOn(place.fake, createAwsKeys(silentLog))
    await opened.bucket.put('a', toSendable('text'))
    place.givers.secret = 'another'
    place.file('token', 'another')
    place.fake.skewMs += 2 * HOUR_MS
    assert.equal((await opened.bucket.read('a'))?.toString(), 'text')
  })
})

test('it is told apart whether there are no keys, whether they are refused, and whether nobody answers', async () => {
  await using place = await startPlace()
  const load = createAwsKeys(silentLog)
  const failing = async (variables: Readonly<Record<string, string>>) => {
    let code = ''
    await withVariables(variables, async () => {
      const error = await load().then(
        () => assert.fail('there were keys'),
        (thrown: unknown) => thrown,
      )
      assert.ok(error instanceof S3Error, String(error))
      assert.ok(!error.message.includes(place.givers.secret), error.message)
      code = error.code
    })
    return code
  }
  assert.equal(await failing({}), 'no_keys')
  const webIdentity = SOURCES['a web identity']?.(place) ?? {}
  assert.equal(await failing({ ...webIdentity, AWS_ROLE_ARN: `${ROLE}-of-others` }), 'keys_refused')
  assert.equal(await failing({ ...webIdentity, AWS_WEB_IDENTITY_TOKEN_FILE: '/nowhere/token' }), 'keys_refused')
  place.givers.status = 403
  assert.equal(await failing(webIdentity), 'keys_refused')
  await place.givers[Symbol.asyncDispose]()
  assert.equal(await failing(webIdentity), 'keys')
})
