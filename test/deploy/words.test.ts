/**
 * Everything in the deployment files that Atelier has to understand: commands, flags, variables with their values, ports and paths. A file
 * that names something else would only be found out by whoever deploys it.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { ENV, OTHER_ENV } from '../../src/config/env.ts'
import { SETTINGS } from '../../src/config/settings/settings.ts'
import { runInProcess } from '../support/cli/in-process.ts'
import {
  podsOf,
  project,
  read,
  readCompose,
  readImage,
  readManifests,
  readUnit,
  renderedText,
  UNITS,
  valueSets,
} from './files.ts'
import { openFolder } from './tools.ts'

/** A process that one of the files starts. */
interface Started {
  readonly where: string
  /** The words after the program. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const SAMPLES: Readonly<Record<string, string>> = {
  ATELIER_DATABASE: 'postgres://atelier:password@postgres.example.com:5432/atelier?sslmode=verify-full',
  ATELIER_SECRET_KEY: 'ab'.repeat(32),
  ATELIER_BLOBS_KEYS: 'id:secret',
  ATELIER_ADMIN_TOKEN: 'an-admin-token-of-some-length',
  ATELIER_TOKEN: 'a-token-of-some-length',
  ATELIER_SIGNING_KEYS: 'cd'.repeat(32),
}

/** Texts of the environment as a container gets them: references to secrets become samples, `${NAME}` too. */
function fill(name: string, value: string | undefined): string {
  if (value === undefined || /^\$\{\w+:\?/.test(value)) return SAMPLES[name] ?? '10.0.0.1'
  return value
    .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
    .replaceAll(/\$\{\w+:\?[^}]*\}/g, 'x')
    .replaceAll('$(POD_IP)', '10.0.0.1')
}

function startedByChart(): Started[] {
  const { env: own, command } = readImage()
  return valueSets().flatMap((set) =>
    podsOf(readManifests(renderedText(set))).map(({ name, containers: [container] }) => ({
      where: `${set}: ${name}`,
      args: container.args ?? command.slice(1),
      env: { ...own, ...Object.fromEntries((container.env ?? []).map((e) => [e.name, fill(e.name, e.value)])) },
    })),
  )
}

function startedByCompose(): Started[] {
  const { env: own } = readImage()
  const ours = Object.entries(readCompose().services).filter(([, { image }]) => image.includes('ATELIER_IMAGE'))
  return ours.map(([name, { command = ['serve'], environment = {} }]) => ({
    where: `compose: ${name}`,
    args: command,
    env: { ...own, ...Object.fromEntries(Object.entries(environment).map(([n, v]) => [n, fill(n, String(v))])) },
  }))
}

function startedByUnits(): Started[] {
  return UNITS.map((unit) => {
    const found = readUnit(unit)
    const [program, ...args] = (found.get('ExecStart')?.[0] ?? '').split(' ')
    assert.equal(program, '/opt/atelier/scripts/atelier.js')
    const assigned = (found.get('Environment') ?? []).flatMap((line) => line.split(' '))
    const env = Object.fromEntries(
      assigned.map((text) => text.replaceAll('%S', '/var/lib').split('=') as [string, string]),
    )
    // What the comment at its head says of the file that all processes share.
    const shared = found.has('EnvironmentFile') ? ['ATELIER_DATABASE', 'ATELIER_SECRET_KEY', 'ATELIER_TOKEN'] : []
    return { where: unit, args, env: { ...Object.fromEntries(shared.map((name) => [name, SAMPLES[name]])), ...env } }
  })
}

const STARTED = [...startedByChart(), ...startedByCompose(), ...startedByUnits()]
const NAMES = new Set<string>([...Object.values(ENV), ...Object.values(OTHER_ENV)])

/** Variables of the files themselves, which never reach the program. */
const NOT_OURS = ['ATELIER_IMAGE', 'ATELIER_SITE', 'ATELIER_NODES']

const helpOf = new Map<string, Promise<string>>()
function askHelp(command: string): Promise<string> {
  const known = helpOf.get(command)
  if (known !== undefined) return known
  const ask = async (flag: string) => {
    const { code, stdout, stderr } = await runInProcess([command, flag], { cwd: project })
    assert.equal(code, 0, `atelier ${command}: ${stderr}`)
    return stdout
  }
  // Some commands say at first only what most people set.
  const asked = ask('--help').then((help) => (help.includes('--help-all') ? ask('--help-all') : help))
  helpOf.set(command, asked)
  return asked
}

test('every command and every flag exists', async () => {
  for (const { where, args } of STARTED) {
    const [command, ...rest] = args
    const help = await askHelp(command)
    for (const flag of rest.filter((word) => word.startsWith('--'))) {
      const isThere = new RegExp(`^\\s+(-\\w, )?${flag}\\b`, 'm').test(help)
      assert.ok(isThere, `${where}: ${command} ${flag}`)
    }
  }
})

test('every variable exists, wherever it is written', () => {
  const files = [
    'compose.yaml',
    '.env.example',
    'Dockerfile',
    'README.md',
    'docker/is-alive.js',
    'proxy/Caddyfile',
    'proxy/nginx.conf',
  ]
  const texts = [
    ...files.map((name) => `deploy/${name}`),
    ...['values.yaml', 'values.schema.json', 'templates/_helpers.tpl', 'templates/api-deployment.yaml'].map(
      (name) => `deploy/chart/${name}`,
    ),
    ...UNITS.map((unit) => `deploy/systemd/${unit}`),
    'docs/scale.md',
  ]
  const found = [
    ...texts.flatMap((name) =>
      [...read(name).matchAll(/\bATELIER_[A-Z][A-Z_]*[A-Z]\b/g)].map(([word]) => [name, word]),
    ),
    ...STARTED.flatMap(({ where, env }) => Object.keys(env).map((name) => [where, name])),
  ]
  const unknown = found.filter(([, word]) => word.startsWith('ATELIER_') && !NAMES.has(word))
  const wrong = unknown.filter(([, word]) => !NOT_OURS.includes(word) && !word.startsWith('ATELIER_TEST_'))
  assert.deepEqual(wrong, [])
})

test('every process would start with the settings that it is given', () => {
  using folder = openFolder()
  const configFile = path.join(folder.path, 'platform.config.json')
  const providersFile = path.join(folder.path, 'providers.json')
  writeFileSync(providersFile, '{}')
  writeFileSync(configFile, JSON.stringify(readConfigOf('platform')))
  for (const { where, args, env } of STARTED) {
    const [command] = args
    const known = Object.entries(env).filter(([name]) => NAMES.has(name))
    const placed = known.map(([name, value]) => [
      name,
      name === OTHER_ENV.configFile ? configFile : name === ENV.providers ? providersFile : value,
    ])
    const { join, tokenFile: _, ...given } = readFlags(args)
    const flags = { ...given, ...(command === 'work' && join === undefined ? { role: 'worker' } : {}) }
    assert.doesNotThrow(
      () =>
        loadConfig({ flags, env: Object.fromEntries(placed), cwd: folder.path, isForUpkeep: command === 'migrate' }),
      where,
    )
  }
})

/** The config file that a set of values makes. */
function readConfigOf(set: string): object {
  const found = readManifests(renderedText(set)).find(({ kind }) => kind === 'ConfigMap')
  const { data } = found as unknown as { data: Record<string, string> }
  return JSON.parse(data['atelier.config.json']) as object
}

/** `--role api` as the command line hands it on. */
function readFlags(args: readonly string[]): Record<string, string | string[]> {
  const flags: Record<string, string | string[]> = {}
  for (const [index, word] of args.entries()) {
    if (!word.startsWith('--')) continue
    const name = word.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    flags[name] = name === 'comfyui' ? [args[index + 1]] : args[index + 1]
  }
  return flags
}

test('every port is the one that the program listens on', () => {
  const own = SETTINGS.port.fallback
  for (const set of valueSets()) {
    for (const { name, containers } of podsOf(readManifests(renderedText(set)))) {
      const [{ ports = [], env = [] }] = containers
      const given = env.find((variable) => variable.name === ENV.port)?.value ?? own
      const http = ports.find((port) => port.name === 'http')
      if (http !== undefined) assert.equal(String(http.containerPort), given, name)
    }
  }
  assert.match(read('deploy/compose.yaml'), new RegExp(`ATELIER_NODES: api-a:${own} api-b:${own}`))
  assert.match(read('deploy/proxy/nginx.conf'), new RegExp(`server 127\\.0\\.0\\.1:${own} `))
  assert.match(read('deploy/proxy/Caddyfile'), new RegExp(`ATELIER_NODES:127\\.0\\.0\\.1:${own}`))
})

test('every path that is asked for is served', async () => {
  const texts = [
    ...valueSets().map(renderedText),
    read('deploy/proxy/Caddyfile'),
    read('deploy/proxy/nginx.conf'),
  ].join('\n')
  const asked = new Set(
    [...texts.matchAll(/(?<![\w.])\/(healthz|readyz|metrics|admin\/v1\/[\w/-]+)/g)].map(([word]) => word),
  )
  const admin = JSON.parse(read('spec/admin.openapi.json')) as { paths: Record<string, unknown> }
  const served = ['/healthz', '/readyz', '/metrics', ...Object.keys(admin.paths)]
  const isServed = (name: string, patterns: readonly string[]) =>
    patterns.some((pattern) => new RegExp(`^(/admin/v1)?${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(name))
  const wrong = [...asked].filter((name) => !isServed(name, served))
  assert.deepEqual(wrong, [])
})
