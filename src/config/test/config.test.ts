import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { describeConfig } from '../../../scripts/describe-settings.ts'
import type { ConfigSources } from '../config.ts'
import { quote } from '../config-error.ts'
import { ENV } from '../env.ts'
import { Secret } from '../secrets.ts'
import { RETIRED, successorOf } from '../settings/retired.ts'
import { flagOf, SETTING_NAMES, SETTINGS, type SettingName, toVariable } from '../settings/settings.ts'
import { cwd, inFolder, load, refusal } from './config-rig.ts'

describe('defaults', () => {
  test('are a loopback listener, a data folder in the working directory and no secret', () => {
    const { config, secrets, warnings, file } = load()
    assert.equal(config.http.host, '127.0.0.1')
    assert.equal(config.http.port, 8189)
    assert.equal(config.http.isLoopback, true)
    assert.equal(config.dataDirectory, path.join(cwd, '.atelier'))
    assert.deepEqual(config.store, { kind: 'sqlite', directory: path.join(cwd, '.atelier'), synchronous: 'full' })
    assert.equal(config.jobs.retentionMs, 7 * 24 * 3600 * 1000)
    assert.equal(config.assets.maxUploadBytes, 10 * 1024 ** 3)
    assert.equal(config.assets.retentionMs, null)
    assert.deepEqual(config.http.brand, ['Service', 'Comfy'])
    assert.deepEqual([secrets.token, secrets.secretKey, warnings, file], [null, null, [], null])
  })

  test('bound the memory of bodies, and the largest body raises the bound to its own size only', () => {
    const bounds = (maxBody: string) => {
      const { maxBodiesBytes, maxBodiesPerCallerBytes } = load({ flags: { maxBody } }).config.http
      return [maxBodiesBytes / 2 ** 20, maxBodiesPerCallerBytes / 2 ** 20]
    }
    assert.deepEqual(['1MiB', '32MiB', '200MiB', '1GiB'].map(bounds), [
      [256, 128],
      [256, 128],
      [256, 200],
      [1024, 1024],
    ])
  })

  test('every default is accepted by its own reader', () => {
    for (const name of SETTING_NAMES) assert.doesNotThrow(() => SETTINGS[name].read(SETTINGS[name].fallback), name)
  })
})

describe('a setting that may be nothing', () => {
  const SHARED = { secretKey: 'ab'.repeat(32), database: 'postgres://a@localhost/shop' }
  const BUCKET = { ...SHARED, blobs: 's3://bytes?endpoint=http://minio:9000' }
  writeFileSync(path.join(cwd, 'keys'), 'id:secret-of-the-bucket')
  // Each setting that may be nothing meets, in one of these, what it would contradict if it were something.
  const configurations: readonly Partial<Record<SettingName, string>>[] = [
    {},
    { host: '0.0.0.0', token: 'a' },
    { kind: 'cloud', adminToken: 'a' },
    { comfyuiLaunch: 'x {port}', comfyuiFrontend: 'editor' },
    SHARED,
    { ...SHARED, bus: 'nats://ann:pass@one' },
    { ...SHARED, bus: 'nats://one?credentials=keys' },
    { ...SHARED, database: 'postgres://a:b@localhost/shop' },
    { ...SHARED, role: 'api' },
    { ...BUCKET, blobsKeys: 'id:secret-of-the-bucket' },
    { ...BUCKET, blobs: `${BUCKET.blobs}&keys=keys` },
  ]
  const toEnv = (settings: Partial<Record<SettingName, string>>) =>
    Object.fromEntries(Object.entries(settings).map(([name, text]) => [ENV[name as SettingName], text]))
  const meaning = (settings: Partial<Record<SettingName, string>>) => {
    const { config, secrets, warnings } = load({ env: toEnv(settings) })
    const reveal = (secret: unknown) => (secret instanceof Secret ? secret.reveal() : secret)
    return JSON.stringify([config, Object.values(secrets).flat().map(reveal), warnings])
  }

  for (const name of SETTING_NAMES.filter((each) => SETTINGS[each].fallback === 'none')) {
    test(`${name} = none is the same as no ${name}`, () => {
      for (const given of configurations.filter((each) => each[name] === undefined)) {
        assert.equal(meaning({ ...given, [name]: 'none' }), meaning(given), JSON.stringify(given))
      }
    })
  }
})

describe('precedence', () => {
  test('a flag wins over the environment, that over the file, that over the default', () => {
    const folder = inFolder({ port: 3, retention: '3d', maxQueue: 3, workers: 3 })
    const env = { [ENV.port]: '2', [ENV.retention]: '2d', [ENV.maxQueue]: '2' }
    const { config } = load({ cwd: folder, env, flags: { port: '1', retention: '1d' } })
    assert.equal(config.http.port, 1)
    assert.equal(config.jobs.retentionMs, 24 * 3600 * 1000)
    assert.equal(config.jobs.maxQueued, 2)
    assert.equal(config.jobs.workers, 3)
    assert.equal(config.jobs.drainTimeoutMs, 30_000)
  })

  test('every setting is read from the environment and from the file', () => {
    for (const name of SETTING_NAMES) {
      const env = { [ENV[name]]: '\0' }
      assert.match(refusal({ env }), new RegExp(`^${name}\\b.*\\(from ${ENV[name]}\\)`), name)
      assert.match(
        refusal({ cwd: inFolder({ [name]: '\0' }) }),
        new RegExp(`^${name}\\b.*atelier\\.config\\.json`),
        name,
      )
    }
  })

  test('a relative folder is resolved against the config file or the working directory that names it', () => {
    const folder = inFolder({ dataDir: 'here' })
    const asked = path.join(folder, 'atelier.config.json')
    assert.equal(load({ flags: { config: asked } }).config.dataDirectory, path.join(folder, 'here'))
    assert.equal(load({ flags: { config: asked, dataDir: 'there' } }).config.dataDirectory, path.join(cwd, 'there'))
    const bare = path.join(inFolder({}), 'atelier.config.json')
    assert.equal(
      load({ env: { ATELIER_CONFIG: bare } }).config.dataDirectory,
      path.join(path.dirname(bare), '.atelier'),
    )
  })

  test('lists may be given by repeated flags, by commas or by an array', () => {
    const wanted = ['https://a.example', 'http://b.example:81']
    assert.deepEqual(load({ flags: { corsOrigins: wanted } }).config.http.corsOrigins, wanted)
    assert.deepEqual(load({ env: { [ENV.corsOrigins]: wanted.join(' , ') } }).config.http.corsOrigins, wanted)
    assert.deepEqual(load({ cwd: inFolder({ corsOrigins: wanted }) }).config.http.corsOrigins, wanted)
  })
})

describe('an error names the setting, its source and the remedy', () => {
  const cases: readonly [SettingName, string][] = [
    ['port', '65536'],
    ['port', '-1'],
    ['port', '80.5'],
    ['port', ''],
    ['host', '127.0.0.1:8189'],
    ['host', 'http://127.0.0.1'],
    ['kind', 'locale'],
    ['retention', '7'],
    ['retention', '0s'],
    ['retention', 'seven days'],
    ['maxUpload', '10'],
    ['maxUpload', '10 gigs'],
    ['maxBody', '1B'],
    ['maxQueue', '0'],
    ['workers', 'many'],
    ['engineThreads', '0'],
    ['logLevel', 'loud'],
    ['previewOutputs', 'maybe'],
    ['recycleAfter', 'often'],
    ['recycleAfter', '0'],
    ['recycleAfter', '500,600'],
    ['recycleAfter', '1GiB,500,2GB'],
    ['corsOrigins', '*'],
    ['corsOrigins', 'https://a.example/'],
    ['corsOrigins', 'https://a.example/path'],
    ['corsOrigins', 'https://a.example?'],
    ['corsOrigins', 'https://a.example#x'],
    ['corsOrigins', 'https://*.example'],
    ['corsOrigins', 'https://user@a.example'],
    ['corsOrigins', 'ftp://a.example'],
    ['corsOrigins', 'null'],
    ['allowedHosts', '*'],
    ['allowedHosts', 'a.example:80'],
    ['publicUrl', 'https://a.example/base'],
    ['publicUrl', 'a.example'],
    ['mountPrefix', 'x'],
    ['mountPrefix', '/x/'],
    ['mountPrefix', '/../x'],
    ['trustedProxies', '10.0.0.0/33'],
    ['trustedProxies', 'proxy.example'],
    ['trustedProxies', '10.0.0.0/8/8'],
    ['brand', ''],
    ['brand', 'X Y'],
    ['dataDir', ''],
    ['tiers', '{'],
    ['jwt', '{'],
    ['deploymentsDomain', 'example.com:443'],
    ['poolHook', 'relative/program'],
  ]
  for (const [name, text] of cases) {
    test(`${name} = ${JSON.stringify(text)}`, () => {
      const message = refusal({ flags: { [name]: text } })
      assert.ok(message.startsWith(`${name} = ${quote(text)} (from ${flagOf(name)})`), message)
      assert.match(message, /give|use|write|begin|one of|must lie between|needs/)
    })
  }

  test('a value with line ends or escape sequences stays on one line', () => {
    const message = refusal({ flags: { port: `1\n\u001b[31m${'x'.repeat(500)}` } })
    assert.ok(!message.includes('\u001b'))
    assert.ok(message.length < 300)
  })
})

describe('the config file', () => {
  test('an unknown key is refused with the nearest name', () => {
    assert.match(refusal({ cwd: inFolder({ prot: 1 }) }), /unknown setting "prot"; did you mean "port"\?$/)
    assert.match(refusal({ cwd: inFolder({ zzzzzzzz: 1 }) }), /unknown setting "zzzzzzzz"; docs\/config\.md/)
    assert.match(refusal({ cwd: inFolder('{"__proto__": {"port": 1}}') }), /unknown setting "__proto__"/)
  })

  test('malformed JSON, a value that is not an object, and a missing file are refused', () => {
    assert.match(refusal({ cwd: inFolder('{"port": }') }), /is not valid JSON/)
    assert.match(refusal({ cwd: inFolder('[]') }), /must hold one JSON object/)
    assert.match(refusal({ flags: { config: 'nowhere.json' } }), /does not exist/)
    const folder = mkdtempSync(path.join(cwd, 'dir-'))
    mkdirSync(path.join(folder, 'atelier.config.json'))
    assert.match(refusal({ cwd: folder }), /is not a file/)
  })

  test('a value of the wrong type is refused', () => {
    assert.match(refusal({ cwd: inFolder({ port: null }) }), /^port in .* has "null"/)
    assert.match(refusal({ cwd: inFolder({ brand: [1] }) }), /^brand in /)
  })
})

describe('folders of custom nodes', () => {
  test('are resolved like other folders, and the flag may be repeated', () => {
    const folder = inFolder({ nodes: ['mine', '/elsewhere'], nodeTimeout: '90s' })
    const { engine } = load({ cwd: folder }).config
    assert.deepEqual([engine.nodeFolders, engine.nodeTimeoutMs], [[path.join(folder, 'mine'), '/elsewhere'], 90_000])
    const { config } = load({ flags: { nodes: ['a', 'b'] } })
    assert.deepEqual(config.engine.nodeFolders, [path.join(cwd, 'a'), path.join(cwd, 'b')])
    assert.deepEqual([load().config.engine.nodeFolders, load().config.engine.nodeTimeoutMs], [[], 600_000])
  })
})

describe('a setting of an earlier version', () => {
  const warned = (sources: Partial<ConfigSources>) =>
    load(sources).warnings.filter((line) => !line.includes('adminToken'))

  test('is accepted wherever it stands, with one line that names it and says what happens now', () => {
    for (const name of Object.keys(RETIRED).filter((each) => successorOf(each) === null)) {
      const places: readonly [Partial<ConfigSources>, string][] = [
        [{ flags: { [name]: '1' } }, '--'],
        [{ env: { [toVariable(name)]: '1' } }, toVariable(name)],
        [{ cwd: inFolder({ [name]: 1 }) }, 'atelier.config.json'],
      ]
      for (const [sources, label] of places) {
        const [line, ...more] = warned(sources)
        assert.ok(line.startsWith(`${name} (from ${label}`), line)
        assert.match(line, /is not a setting any more and has no effect: \w/)
        assert.deepEqual(more, [])
      }
    }
  })

  test('still counts where it became part of another one, unless that is given', () => {
    const old = { comfyuiLaunch: 'x {port}', recycleJobs: '5', recycleMemory: '1GiB', recycleAge: 'none' }
    const { config } = load({ flags: old })
    assert.deepEqual(config.fleet.recycle, { maxJobs: 5, maxMemoryBytes: 2 ** 30, maxAgeMs: null })
    assert.match(warned({ flags: old })[0], /^recycleJobs \(from --recycle-jobs\) is now recycleAfter; it still counts/)
    const own = load({ flags: { ...old, recycleAfter: '2d' } }).config.fleet.recycle
    assert.deepEqual(own, { maxJobs: null, maxMemoryBytes: null, maxAgeMs: 2 * 86_400_000 })
    const env = { ATELIER_JWT_KEYS: 'keys.json', ATELIER_JWT_ISSUER: 'https://login.example' }
    const shared = load({ env, flags: { kind: 'cloud', jwtAudience: 'atelier', jwtScopesClaim: 'permissions' } })
    assert.partialDeepStrictEqual(shared.config.accounts?.jwt, {
      keys: { kind: 'file', path: path.join(cwd, 'keys.json') },
      ...{ issuer: 'https://login.example', audience: 'atelier', accountClaim: 'sub', scopesClaim: 'permissions' },
    })
    const partial = refusal({ env: { ...env, ATELIER_KIND: 'cloud' } })
    assert.match(partial, /^jwt \(from ATELIER_JWT_KEYS and ATELIER_JWT_ISSUER\) needs audience/)
    const algorithms = load({
      cwd: inFolder({ kind: 'cloud', jwtAlgorithms: ['ES256', 'ES384'], jwtAudience: 'atelier' }),
      env,
    })
    assert.deepEqual(algorithms.config.accounts?.jwt?.algorithms, ['ES256', 'ES384'])
  })

  test('counts over the one that took it over where its source wins, and says which of both counts', () => {
    const file = inFolder({ comfyuiLaunch: 'x {port}', recycleAfter: '24GiB' })
    const byFlag = { cwd: file, flags: { recycleJobs: '100' } }
    assert.deepEqual(load(byFlag).config.fleet.recycle, { maxJobs: 100, maxMemoryBytes: null, maxAgeMs: null })
    assert.deepEqual(warned(byFlag), [
      'recycleJobs (from --recycle-jobs) is now recycleAfter; it still counts, and recycleAfter (from atelier.config.json) is ignored; write it there',
    ])
    const byVariable = { cwd: file, env: { ATELIER_RECYCLE_JOBS: '100' }, flags: { recycleAfter: '200' } }
    assert.equal(load(byVariable).config.fleet.recycle.maxJobs, 200)
    assert.deepEqual(warned(byVariable), [
      'recycleJobs (from ATELIER_RECYCLE_JOBS) is now recycleAfter; it is ignored, because recycleAfter (from --recycle-after) is given; leave it out',
    ])
    const jwt = JSON.stringify({ keys: 'new.json', issuer: 'i', audience: 'a' })
    const both = { env: { ATELIER_KIND: 'cloud', ATELIER_JWT: jwt, ATELIER_JWT_KEYS: 'old.json' } }
    assert.partialDeepStrictEqual(load(both).config.accounts?.jwt?.keys, { path: path.join(cwd, 'new.json') })
    assert.deepEqual(warned(both), [
      'jwtKeys (from ATELIER_JWT_KEYS) is now "keys" of jwt; it is ignored, because jwt (from ATELIER_JWT) is given; leave it out',
    ])
    assert.match(warned({ flags: { recycleAge: 'none' } })[0], /; none is the same as leaving it out; leave it out$/)
  })

  test('is read as it was then, and a mistake in it is reported under its own name', () => {
    for (const [name, text] of [
      ['recycleMemory', '500'],
      ['recycleJobs', '1d'],
      ['recycleJobs', '5,6'],
      ['recycleAge', '24GiB'],
    ]) {
      const message = refusal({ flags: { comfyuiLaunch: 'x {port}' }, env: { [toVariable(name)]: text } })
      assert.ok(message.startsWith(`${name} = "${text}" (from ${toVariable(name)}) is not a `), message)
    }
  })

  test('that was a stricter limit than the one of today is said to be looser now', () => {
    const stricter = { urlLifetime: '1h', maxImagePixels: '1000000', routerMaxResult: '10MiB' }
    for (const [name, text] of Object.entries(stricter)) {
      const [line] = warned({ flags: { [name]: text } })
      assert.ok(line.endsWith(`, which is looser than the ${text} asked for; leave it out`), line)
    }
    for (const flags of [{ urlLifetime: '24h' }, { routerMaxResult: '2GiB' }, { engineQueueAfter: 'none' }]) {
      assert.doesNotMatch(warned({ flags })[0], /looser/)
    }
  })
})

test('an unknown ATELIER_ variable causes a warning', () => {
  assert.match(
    load({ env: { ATELIER_PROT: '1', OTHER: '2' } }).warnings.join(),
    /^the environment variable ATELIER_PROT /,
  )
})

test('there are at most 84 settings, and each says who would set it', () => {
  assert.ok(SETTING_NAMES.length <= 84)
  for (const name of SETTING_NAMES) assert.match(SETTINGS[name].who, /^[A-Z].{15,}\.$/, name)
})

test('docs/config.md is what the table of settings says (rewrite it with: node scripts/write-docs.ts)', () => {
  assert.equal(readFileSync(new URL('../../../docs/config.md', import.meta.url), 'utf8'), describeConfig())
})
