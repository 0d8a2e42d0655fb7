/**
 * Every route of a whole service against credentials that have every right but the one that it declares. The routes come from the
 * server itself, so a new one is tried as soon as it is registered; those that need no credential are listed here, one by one.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { SCOPES, type Scope } from '../../src/domain/accounts/caller.ts'
import { type DeclaredRoute, needs } from '../../src/surfaces/kit/guards/routes.ts'
import type { Surface } from '../../src/surfaces/kit/surface.ts'
import { ADMIN_TOKEN, type SharedApp, startShared } from '../support/app/start-shared.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { type Answer, call } from '../support/clients/call.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
const ID = '0190a1b2-0000-7000-8000-000000000001'

/** Without HEAD, which goes with GET. `ALL`: every method. */
const PUBLIC = [
  ...[
    'GET /',
    'GET /healthz',
    'GET /readyz',
    'GET /api/v2/health',
    'OPTIONS /api/v2/uploads',
    'GET /content/:id',
    'GET /content/checked',
  ],
  ...['GET /console', 'GET /console/*', 'GET /console/files/:name'],
  // Who is signed in; signing in and out.
  ...['GET /console/v1/session', 'POST /console/v1/session', 'DELETE /console/v1/session'],
  // Addresses below that do not exist, and methods that a path lacks.
  ...['ALL /console/v1/*', 'GET /console/v1/jobs/cancel'],
  'GET /proxy/openapi.json',
  'GET /replicate/v1/openapi.json',
  'GET /deploy/v1/openapi.json',
  'GET /builder/v1/openapi.json',
  // The signature in the address is the authorisation.
  ...['PUT /builder/blobs/:id', 'GET /builder/blobs/:id'],
  'GET /v1/images/openapi.json',
  'GET /v1/chat/openapi.json',
  // The token in the address is the authorisation.
  ...['GET /share/:token', 'GET /share/files/:name', 'GET /share/openapi.json', 'GET /share/:token/endpoint'],
  ...['POST /share/:token/runs', 'GET /share/:token/runs/:run', 'POST /share/:token/runs/:run/cancel'],
  ...['events', 'outputs/:index', 'inputs/:name'].map((what) => `GET /share/:token/runs/:run/${what}`),
  ...['endpoint', 'runs', 'runs/:run', 'runs/:run/*'].map((what) => `OPTIONS /share/:token/${what}`),
  // The address is the authorisation.
  'PUT /customers/storage/*',
  ...[
    '',
    '/admin',
    '/builder',
    '/chat',
    '/console',
    '/deploy',
    '/images',
    '/legacy-v1',
    '/partner-nodes',
    '/replicate',
    '/router',
    '/share',
    '/worker',
  ].flatMap((page) => [`GET /docs${page}`, `GET /docs${page}/openapi.json`]),
  'GET /docs/atelier_client.py',
]
const EDITOR_PUBLIC = [
  ...['GET /', 'GET /index.html', 'GET /*', 'GET /templates/*', 'GET /user.css'],
  ...[
    'GET /sign-in',
    'POST /sign-in',
    'POST /sign-out',
    'GET /extensions/atelier/first-graph.js',
    'GET /content/:id',
    'GET /content/checked',
  ],
]

let folder: string
let shared: SharedApp
/** A key of one account with every scope but this one. */
const keysWithout = new Map<Scope, string>()
let wholeKey: string
let workerKey: string

before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'atelier-rights-'))
  await writeFile(path.join(folder, 'index.html'), '<!doctype html><title>editor</title>')
  shared = await startShared({ workers: '0', joins: 'on', comfyuiFrontend: folder, comfyuiFrontendPort: '0' })
  wholeKey = (await shared.account('acme')).key
  for (const scope of SCOPES) {
    const scopes = SCOPES.filter((each) => each !== scope)
    const made = await shared.admin('POST', '/accounts/acme/keys', { scopes })
    keysWithout.set(scope, made.json.text)
  }
  workerKey = (await shared.admin('POST', '/workers/keys', {})).json.text
})
after(async () => {
  await shared[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

interface Listener {
  readonly url: string
  readonly routes: readonly DeclaredRoute[]
}

function listeners(): Listener[] {
  const { app } = shared.service
  assert.notEqual(app.frontendUrl, null)
  return [
    { url: app.url, routes: app.routes },
    { url: app.frontendUrl ?? '', routes: app.frontendRoutes },
  ]
}

/** Asks with this credential, as an ordinary client would; a stream that opens is closed again. */
function ask(url: string, route: DeclaredRoute, credential: string | null): Promise<Answer> {
  const place = route.url.replaceAll(/:\w+/g, ID).replace('*', ID)
  const headers = credential === null ? undefined : { authorization: `Bearer ${credential}` }
  return call(url, place, { method: route.method, headers })
}

async function tryAll(
  wanted: (route: DeclaredRoute) => boolean,
  credentialOf: (route: DeclaredRoute) => string | null,
) {
  const answers: { readonly name: string; readonly status: number }[] = []
  for (const { url, routes } of listeners()) {
    for (const route of routes.filter((each) => METHODS.includes(each.method) && wanted(each))) {
      const { status } = await ask(url, route, credentialOf(route))
      answers.push({ name: `${route.method} ${route.url}`, status })
    }
  }
  return answers
}

const isScoped = ({ right }: DeclaredRoute) => (SCOPES as readonly string[]).includes(right)
const others = (answers: Awaited<ReturnType<typeof tryAll>>, status: number) =>
  answers.filter((answer) => answer.status !== status)
/** Which of the two is no matter: a worker's key is one of an account that may do nothing else. */
const accepted = (answers: Awaited<ReturnType<typeof tryAll>>) =>
  answers.filter(({ status }) => status !== 401 && status !== 403)

describe('every route of a whole service', () => {
  test('is refused to a key that has every scope but the one that it needs', async () => {
    const answers = await tryAll(isScoped, ({ right }) => keysWithout.get(right as Scope) ?? null)
    assert.ok(answers.length > 150, `${answers.length} routes need a scope`)
    assert.deepEqual(others(answers, 403), [])
  })

  test('that needs a credential is refused without one, and with one that nobody has', async () => {
    const isOpen = ({ right }: DeclaredRoute) => right === 'public'
    assert.deepEqual(
      others(
        await tryAll(
          (route) => !isOpen(route),
          () => null,
        ),
        401,
      ),
      [],
    )
    assert.deepEqual(
      others(
        await tryAll(
          (route) => !isOpen(route),
          () => 'no-such-key',
        ),
        401,
      ),
      [],
    )
  })

  test('of the operator or of workers is refused to whoever is not that', async () => {
    const isOf = (right: string) => (route: DeclaredRoute) => route.right === right
    for (const credential of [wholeKey, workerKey])
      assert.deepEqual(others(await tryAll(isOf('operator'), () => credential), 401), [])
    for (const credential of [wholeKey, ADMIN_TOKEN])
      assert.deepEqual(others(await tryAll(isOf('worker'), () => credential), 401), [])
    const accounts = (route: DeclaredRoute) => isScoped(route) || route.right === 'any_scope'
    for (const credential of [workerKey, ADMIN_TOKEN])
      assert.deepEqual(accepted(await tryAll(accounts, () => credential)), [])
  })

  test('that shows an asset is refused to a key that may read neither assets nor jobs', async () => {
    const made = await shared.admin('POST', '/accounts/acme/keys', { scopes: ['models:read', 'assets:write'] })
    const answers = await tryAll(
      ({ right }) => right === 'asset',
      () => made.json.text,
    )
    assert.ok(answers.length > 0)
    assert.deepEqual(others(answers, 403), [])
  })

  test('that needs none is one of those that are meant to', () => {
    const [main, editor] = listeners().map(({ routes }) => publicOf(routes))
    assert.deepEqual(main, [...PUBLIC].sort())
    assert.deepEqual(editor, [...EDITOR_PUBLIC].sort())
  })
})

/** A path that is open to all methods is one entry. */
function publicOf(routes: readonly DeclaredRoute[]): string[] {
  const open = routes.filter(({ right, method }) => right === 'public' && method !== 'HEAD')
  const byUrl = Map.groupBy(open, ({ url }) => url)
  const names = [...byUrl].flatMap(([url, same]) =>
    same.length > METHODS.length ? [`ALL ${url}`] : same.map(({ method }) => `${method} ${url}`),
  )
  return names.sort()
}

describe('a server', () => {
  const surface = (register: Surface['register']): Surface => ({ name: 'new', register, allowedMethods: () => [] })

  test('with a route that does not declare what it needs does not start, and names it', async () => {
    const open = surface((app) => app.get('/new/secrets', () => 'everything'))
    await assert.rejects(
      startSurface({ server: { surfaces: [open] } }),
      /the route GET \/new\/secrets does not declare what it needs/,
    )
  })

  test('with sockets that do not declare what they need does not start either', async () => {
    const upgrades = {
      takes: () => true,
      open: async () => {},
      answerError: () => null,
    } as unknown as Surface['upgrades']
    const open = { ...surface(() => {}), upgrades }
    await assert.rejects(
      startSurface({ server: { surfaces: [open] } }),
      /the sockets of new do not declare what they need/,
    )
  })

  test('with a route whose right nobody would check does not start either', async () => {
    const unguarded = surface((app) => app.get('/new/jobs', needs('jobs:read'), () => 'everything'))
    await assert.rejects(
      startSurface({ server: { surfaces: [unguarded] } }),
      /the route GET \/new\/jobs needs jobs:read, but its surface has no guard/,
    )
  })

  test('with a route that is public on purpose does', async () => {
    const meant = surface((app) => app.get('/new/hello', needs('public'), () => 'hello'))
    await using started = await startSurface({ server: { surfaces: [meant] } })
    assert.equal((await call(started.url, '/new/hello')).text, 'hello')
  })
})
