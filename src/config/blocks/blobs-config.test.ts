/** The settings of a bucket: what is read from an address, what is refused, and that its keys are never shown. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import { type ConfigSources, loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'
import { ENV } from '../env.ts'

const KEYS = 'AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
let cwd: string
before(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'atelier-bucket-'))
})
after(() => rmSync(cwd, { recursive: true, force: true }))

const BASE = { [ENV.secretKey]: 'ab'.repeat(32), [ENV.database]: 'postgres://a@localhost/shop', [ENV.blobsKeys]: KEYS }

function load(env: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}) {
  return loadConfig({ flags: {}, cwd, ...more, env: { ...BASE, ...env } })
}

function refusal(env: Readonly<Record<string, string | undefined>>): string {
  try {
    loadConfig({ flags: {}, cwd, env: { ...BASE, ...env } })
  } catch (error) {
    assert.ok(error instanceof ConfigError, inspect(error))
    assert.ok(!error.message.includes('\n') && !error.message.includes('wJalr'), error.message)
    return error.message
  }
  assert.fail('the configuration was accepted')
}

test('an address is taken apart', () => {
  const { config, secrets } = load({
    [ENV.blobs]:
      's3://my-bytes/a/b?endpoint=http://minio:9000&publicEndpoint=https://files.example.com&region=eu-1&pathStyle=1',
    [ENV.blobCache]: '1GiB',
    [ENV.content]: 'proxy',
  })
  assert.deepEqual(config.blobs, {
    kind: 's3',
    bucket: 'my-bytes',
    prefix: 'a/b/',
    endpoint: 'http://minio:9000',
    publicEndpoint: 'https://files.example.com',
    region: 'eu-1',
    isPathStyle: true,
    shown: 's3://my-bytes/a/b at http://minio:9000',
    cacheDirectory: path.join(cwd, '.atelier', 'blob-cache'),
    cacheBytes: 2 ** 30,
    isDirect: false,
    keysFile: null,
  })
  assert.equal(secrets.blobsKeys?.reveal(), KEYS)
  assert.ok(!inspect(secrets, { depth: 9, showHidden: true }).includes('wJalr'))
})

test('an address without parameters is one of the largest service', () => {
  const { blobs } = load({ [ENV.blobs]: 's3://my-bytes' }).config
  assert.ok(blobs.kind === 's3')
  assert.deepEqual(
    [blobs.endpoint, blobs.publicEndpoint, blobs.prefix, blobs.isPathStyle, blobs.isDirect],
    ['https://s3.us-east-1.amazonaws.com', 'https://s3.us-east-1.amazonaws.com', '', false, true],
  )
})

test('what is no bucket is refused with one sentence', () => {
  const faults: readonly (readonly [string, RegExp])[] = [
    ['', /is not the address of a bucket/],
    ['https://my-bytes', /is not the address of a bucket/],
    ['s3://my-bytes:9000', /is not the address of a bucket/],
    ['s3://id:word@my-bytes', /ATELIER_BLOBS_KEYS/],
    ['s3://x', /names no bucket/],
    ['s3://my-bytes/a%20b', /prefix with other characters/],
    ['s3://my-bytes?region=', /region that is none/],
    ['s3://my-bytes?endpoint=s3.example.com', /has an endpoint that is not/],
    ['s3://my-bytes?endpoint=https://s3.example.com/deep', /has an endpoint that is not/],
    ['s3://my-bytes?pathStyle=yes', /pathStyle/],
    ['s3://my-bytes?acl=public', /parameter "acl"/],
  ]
  for (const [text, reason] of faults) assert.match(refusal({ [ENV.blobs]: text }), reason, text)
})

test('a bucket needs a database; its keys are given once, or come from where the process runs', () => {
  const bucket = { [ENV.blobs]: 's3://my-bytes' }
  assert.match(refusal({ ...bucket, [ENV.database]: undefined }), /needs a Postgres database/)
  const without = { flags: {}, cwd, env: { ...BASE, ...bucket, [ENV.blobsKeys]: undefined } }
  assert.equal(loadConfig(without).secrets.blobsKeys, null)
  assert.match(refusal({ ...bucket, [ENV.blobsKeys]: 'only-an-id' }), /is not id:secret/)
  const file = path.join(cwd, 'keys')
  writeFileSync(file, `${KEYS}\n`)
  const named = { ...bucket, [ENV.blobs]: `s3://my-bytes?keys=${file}` }
  assert.match(refusal(named), /keep one of them/)
  const fromFile = loadConfig({
    flags: {},
    cwd,
    env: { ...BASE, ...named, [ENV.blobsKeys]: undefined },
  })
  assert.equal(fromFile.secrets.blobsKeys?.reveal(), KEYS)
  assert.ok(fromFile.config.blobs.kind === 's3' && fromFile.config.blobs.keysFile === file, 'it is read again later')
  writeFileSync(file, 'nothing of the kind\n')
  assert.match(refusal({ ...named, [ENV.blobsKeys]: undefined }), /first line is not/)
})

test('what is about a bucket is refused without one', () => {
  for (const name of ['blobsKeys', 'blobCache', 'content'] as const) {
    const value = { blobsKeys: KEYS, blobCache: '1GiB', content: 'proxy' }[name]
    const env = { ...BASE, [ENV.blobsKeys]: undefined, [ENV[name]]: value }
    assert.throws(() => loadConfig({ flags: {}, cwd, env }), new RegExp(`^ConfigError: ${name} .*none is named`))
  }
})
