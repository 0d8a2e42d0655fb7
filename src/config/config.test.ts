import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { type ConfigSources, loadConfig } from './config.ts'
import { ConfigError, quote } from './config-error.ts'
import { ENV, type SettingName } from './env.ts'
import { describeConfig } from './settings/describe-settings.ts'
import { flagOf, SETTING_NAMES, SETTINGS } from './settings/settings.ts'

let cwd: string
before(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'atelier-config-'))
})
after(() => rmSync(cwd, { recursive: true, force: true }))

function load(sources: Partial<ConfigSources> = {}) {
  return loadConfig({ flags: {}, env: {}, cwd, ...sources })
}

function inFolder(content: unknown): string {
  const folder = mkdtempSync(path.join(cwd, 'file-'))
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  writeFileSync(path.join(folder, 'atelier.config.json'), text)
  return folder
}

function refusal(sources: Partial<ConfigSources>): string {
  try {
    load(sources)
  } catch (error) {
    assert.ok(error instanceof ConfigError, `a ConfigError, not ${inspect(error)}`)
    assert.ok(!error.message.includes('\n'), 'one line')
    return error.message
  }
  assert.fail('the configuration was accepted')
}

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
    assert.equal(config.http.transferGc, true)
    assert.deepEqual([secrets.token, secrets.secretKey, warnings, file], [null, null, [], null])
  })

  test('every default is accepted by its own reader', () => {
    for (const name of SETTING_NAMES) assert.doesNotThrow(() => SETTINGS[name].read(SETTINGS[name].fallback), name)
  })
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
    ['logRequests', 'maybe'],
    ['synchronous', 'off'],
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
    ['transferGc', 'true'],
    ['dataDir', ''],
    ['maxImagePixels', '0'],
    ['urlLifetime', '8d'],
    ['tiers', '{'],
    ['jwtKeys', 'http://login.example/keys'],
    ['jwtIssuer', 'two words'],
    ['jwtAlgorithms', 'HS256'],
    ['jwtAlgorithms', 'none'],
    ['deploymentsDomain', 'example.com:443'],
    ['stagingLabel', 'a.b'],
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

describe('listening beyond this machine', () => {
  for (const host of ['', '0.0.0.0', '::', '[::]', '192.168.1.5', 'example.com', '127.1']) {
    test(`${JSON.stringify(host)} needs a token`, () => {
      assert.match(refusal({ flags: { host } }), /^host = .*no token.*ATELIER_TOKEN.*--allow-insecure-bind$/)
      assert.equal(load({ flags: { host, token: 'x' } }).config.http.isLoopback, false)
      const { warnings } = load({ flags: { host, allowInsecureBind: true } })
      assert.match(warnings.join(), /without a token/)
    })
  }

  for (const host of ['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1']) {
    test(`${host} does not`, () => assert.equal(load({ flags: { host } }).config.http.isLoopback, true))
  }

  test('an empty host listens on every interface', () => {
    assert.equal(load({ flags: { host: '', token: 'x' } }).config.http.host, '0.0.0.0')
  })
})

test('the configured names of the service are allowed in Host', () => {
  const flags = {
    host: 'box.lan',
    token: 'x',
    publicUrl: 'https://Atelier.example:8443',
    allowedHosts: 'Other.example',
  }
  assert.deepEqual(load({ flags }).config.http.allowedHosts, ['other.example', 'box.lan', 'atelier.example'])
  assert.deepEqual(load({ flags: { host: '0.0.0.0', token: 'x' } }).config.http.allowedHosts, [])
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

describe('the kinds that many accounts share', () => {
  const jwt = { jwtKeys: 'keys.json', jwtIssuer: 'https://login.example', jwtAudience: 'atelier' }

  test('need no other setting, also when they listen beyond this machine', () => {
    for (const kind of ['cloud', 'serverless']) {
      const { config, warnings } = load({ flags: { kind, host: '0.0.0.0' } })
      assert.equal(config.kind, kind)
      assert.deepEqual(config.accounts, { tiers: null, tiersFile: null, prices: null, jwt: null })
      assert.match(warnings.join(), /no adminToken/)
      assert.doesNotMatch(warnings.join(), /without a token/)
    }
    assert.deepEqual([load().config.accounts, load().config.deployments], [null, null])
  })

  test('refuse what only makes sense for one user, and the local kind what only makes sense for many', () => {
    for (const flags of [{ token: 'x' }, { modelsDir: 'm' }, { allowInsecureBind: true }]) {
      const message = refusal({ flags: { kind: 'cloud', ...flags } })
      assert.match(
        message,
        /^(token|modelsDir|allowInsecureBind) \(from --.*does not fit kind = "cloud".*leave it out$/,
      )
    }
    for (const flags of [
      { tiers: 't.json' },
      { prices: '{}' },
      jwt,
      { deploymentsDomain: 'a.b' },
      { poolHook: '/x' },
    ]) {
      assert.match(refusal({ flags }), /is for the kinds cloud and serverless; add --kind cloud, or leave it out$/)
    }
  })

  test('take tokens signed elsewhere only with keys, issuer, audience and algorithms', () => {
    const { config } = load({ flags: { kind: 'cloud', ...jwt } })
    assert.deepEqual(config.accounts?.jwt?.keys, { kind: 'file', path: path.join(cwd, 'keys.json') })
    assert.deepEqual(config.accounts?.jwt?.algorithms, ['RS256', 'PS256', 'ES256', 'EdDSA'])
    for (const name of ['jwtKeys', 'jwtIssuer', 'jwtAudience']) {
      const flags = { kind: 'cloud', ...jwt, [name]: 'none' }
      assert.match(refusal({ flags }), new RegExp(`needs ${name} as well`))
    }
    assert.match(refusal({ flags: { kind: 'cloud', ...jwt, jwtAlgorithms: '' } }), /needs jwtAlgorithms as well/)
  })

  test('read tiers and prices from the config file itself or from a file beside it', () => {
    const tiers = { free: { concurrentJobs: 1 } }
    const folder = inFolder({ kind: 'cloud', tiers, prices: 'prices.json' })
    writeFileSync(path.join(folder, 'prices.json'), '{"perSecond": {}}')
    const { config } = load({ cwd: folder })
    assert.deepEqual([config.accounts?.tiers, config.accounts?.prices], [tiers, { perSecond: {} }])
    assert.match(
      refusal({ flags: { kind: 'cloud', tiers: 'nowhere.json' } }),
      /^tiers: there is no JSON file .*nowhere/,
    )
    writeFileSync(path.join(folder, 'prices.json'), '[]')
    assert.match(refusal({ cwd: folder }), /^prices: the file .* must hold one JSON object$/)
    assert.match(refusal({ cwd: inFolder({ port: {} }) }), /^port in /)
  })

  test('the admin token must not be the token of callers', () => {
    assert.match(refusal({ flags: { token: 'same', adminToken: 'same' } }), /^adminToken and token are the same/)
  })
})

describe('signing keys', () => {
  const [one, two] = [Buffer.alloc(32, 1).toString('base64'), '02'.repeat(16)]

  test('may be several, with or without a name, and are never printed', () => {
    const loaded = load({ env: { [ENV.signingKeys]: `june:${one}, ${two}` } })
    const keys = loaded.secrets.signingKeys.map(({ name, secret }) => [name, secret.reveal().length])
    assert.deepEqual(keys, [
      ['june', 32],
      [null, 16],
    ])
    assert.ok(!inspect(loaded, { depth: 9 }).includes(one))
  })

  test('that are short, malformed or share a name are refused, and the error does not repeat them', () => {
    for (const bad of ['c2hvcnQ=', `a:${one},a:${two}`, `${one},`, 'a b c d e f g h i j k l m']) {
      const message = refusal({ env: { [ENV.signingKeys]: bad } })
      assert.match(message, /^signingKeys \(from ATELIER_SIGNING_KEYS\)/)
      assert.ok(!message.includes(one) && !message.includes('c2hvcnQ='))
    }
  })
})

describe('secrets', () => {
  const token = 'tok-very-secret-1234'
  const key = Buffer.alloc(32, 7).toString('base64')

  test('are revealed only on request', () => {
    const { secrets } = load({ env: { [ENV.token]: token, [ENV.secretKey]: key } })
    assert.equal(secrets.token?.reveal(), token)
    assert.deepEqual(secrets.secretKey?.reveal(), new Uint8Array(32).fill(7))
    assert.deepEqual(
      load({ env: { [ENV.secretKey]: '07'.repeat(32) } }).secrets.secretKey?.reveal(),
      new Uint8Array(32).fill(7),
    )
  })

  test('appear in no printed form of the loaded configuration', () => {
    const loaded = load({ env: { [ENV.token]: token, [ENV.secretKey]: key } })
    const texts = [
      JSON.stringify(loaded),
      inspect(loaded, { depth: 9, showHidden: true }),
      `${loaded.secrets.token}`,
      String(loaded.secrets.secretKey),
    ]
    for (const text of texts) {
      assert.ok(!text.includes(token), text)
      assert.ok(!text.includes(key), text)
      assert.ok(!/\b7, 7, 7\b/.test(text), text)
    }
  })

  test('appear in no error, not even when they are malformed', () => {
    for (const bad of ['hush hush', '', `${'x'.repeat(2000)}`, 'umlaut-ü']) {
      const message = refusal({ flags: { token: bad } })
      assert.match(message, /^token \(from --token\)/)
      assert.ok(bad === '' || !message.includes(bad.slice(0, 20)))
    }
    const message = refusal({ env: { [ENV.secretKey]: 'c2hvcnQ=' } })
    assert.match(message, /^secretKey \(from ATELIER_SECRET_KEY\) is not 32 bytes/)
    assert.ok(!message.includes('c2hvcnQ'))
    assert.ok(!refusal({ cwd: inFolder({ token: ['a', 5] }) }).includes('"a"'))
  })

  test('the secret key has no flag', () => assert.equal(flagOf('secretKey'), null))
})

test('an unknown ATELIER_ variable causes a warning', () => {
  assert.match(
    load({ env: { ATELIER_PROT: '1', OTHER: '2' } }).warnings.join(),
    /^the environment variable ATELIER_PROT /,
  )
})

test('docs/config.md is what the table of settings says (rewrite it with: node scripts/write-docs.ts)', () => {
  assert.equal(readFileSync(new URL('../../docs/config.md', import.meta.url), 'utf8'), describeConfig())
})
