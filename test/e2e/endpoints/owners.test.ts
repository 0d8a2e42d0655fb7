/** What owners of endpoints bound, pay for and see, through HTTP and in the name of accounts that pay. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { node } from '../../support/clients/checked-client.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { waitUntil } from '../../support/wait-until.ts'

const START = new Date('2026-05-30T22:10:00.000Z')
const SAVE = node('FakeSave', { text: 'picture ' })
const GRAPHS = {
  plain: { '1': node('FakeSource'), '2': SAVE },
  gated: { '1': node('FakeGate'), '2': SAVE },
  failing: { '1': node('FakeSource'), '2': SAVE, '3': node('FakeFail') },
}
const DECLARATION = { only: true, inputs: { prompt: { from: '2.text' } } }
const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 0, minimumMicros: 1000, holdMicros: 5000 } } })

describe('owners of endpoints', () => {
  const clock = createFixedClock(START)
  let app: SharedApp
  let count = 0
  before(async () => {
    app = await startShared({ prices: PRICES, workers: '4' }, { overrides: { clock } })
  })
  after(() => app[Symbol.asyncDispose]())

  /** With every endpoint, and credit for what it runs. */
  async function open(): Promise<Owner> {
    count += 1
    const tenant = await app.account(`owner-${count}`, { creditFloorMicros: 0 })
    assert.equal((await app.admin('POST', `/accounts/${tenant.id}/grants`, { usd: '10' })).status, 201)
    const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      tenant.call(`/api/v2/endpoints${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    for (const [name, file] of Object.entries(GRAPHS))
      assert.equal((await send('POST', '', { name, file, declaration: DECLARATION })).status, 201)
    const run = (name: string, more: { wait?: boolean; key?: string } = {}) =>
      send(
        'POST',
        `/${name}/runs`,
        { inputs: { prompt: 'a' } },
        {
          ...(more.wait && { prefer: 'wait=60' }),
          ...(more.key !== undefined && { 'idempotency-key': more.key }),
        },
      )
    const limit = async (name: string, limits: object | null) => {
      const answer = await send('PATCH', `/${name}`, { limits })
      assert.equal(answer.status, 200, answer.text)
      return answer.json.limits
    }
    const price = (name: string, body: object) =>
      app.admin('PUT', `/accounts/${tenant.id}/endpoints/${name}/price`, body)
    const balance = async () => (await app.admin('GET', `/accounts/${tenant.id}`)).json.balance
    const untilEnded = (id: string) =>
      waitUntil(async () => {
        const { json } = await tenant.call(`/api/v2/jobs/${id}`)
        return ['succeeded', 'failed', 'canceled'].includes(json.status) ? json : null
      })
    return { tenant, send, run, limit, price, balance, untilEnded }
  }

  interface Owner {
    readonly tenant: Tenant
    send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
    run(name: string, more?: { wait?: boolean; key?: string }): Promise<Answer>
    limit(name: string, limits: object | null): Promise<unknown>
    price(name: string, body: object): Promise<Answer>
    // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
    balance(): Promise<any>
    // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
    untilEnded(id: string): Promise<any>
  }

  const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort()

  test('of 50 calls at once exactly as many are taken as may be in flight, and the end of one makes room for one', async () => {
    const { run, limit, untilEnded, send } = await open()
    assert.deepEqual(await limit('gated', { in_flight: 3 }), { in_flight: 3, runs: {}, spend_usd: {} })
    const answers = await Promise.all(Array.from({ length: 50 }, () => run('gated')))
    assert.deepEqual(statuses(answers), [...Array(3).fill(201), ...Array(47).fill(429)])
    const refused = answers.find(({ status }) => status === 429)
    assert.deepEqual(refused?.json.error, {
      code: 'run_limit',
      message: 'the endpoint gated takes 3 at a time; send it again when one has ended',
      details: { limit: 'in_flight', period: null, maximum: 3, until: null },
    })
    assert.match(String(refused?.headers['retry-after']), /^[1-9]\d?$/)
    app.engine.openGate()
    const accepted = answers.filter(({ status }) => status === 201).map(({ json }) => json.id)
    await Promise.race(accepted.map(untilEnded))
    assert.deepEqual(statuses([await run('gated'), await run('gated')]), [201, 429])
    const usage = (await send('GET', '/gated/usage')).json
    assert.deepEqual(usage.limits, { in_flight: { now: 3, maximum: 3 }, runs: {}, spend_usd: {} })
    for (let gate = 0; gate < 3; gate += 1) app.engine.openGate()
  })

  test('a period counts each run once, whatever becomes of it or however often it is sent, and the next one begins anew', async () => {
    const { run, limit, send } = await open()
    await limit('failing', { runs: { hour: 2, month: 3 } })
    const [first, again] = [await run('failing', { key: 'once', wait: true }), await run('failing', { key: 'once' })]
    assert.deepEqual([first.status, first.json.status, again.status], [200, 'failed', 422])
    assert.equal((await send('POST', '/failing/runs', { inputs: { nothing: 1 } })).json.error.code, 'invalid_input')
    assert.equal((await run('failing', { wait: true })).status, 200)
    const full = await run('failing')
    assert.deepEqual([full.status, full.headers['retry-after']], [429, '3000'])
    assert.equal(
      full.json.error.message,
      'the endpoint failing takes 2 runs in one hour; the next one begins at 2026-05-30T23:00:00.000Z',
    )
    clock.advance(50 * 60_000)
    assert.equal((await run('failing', { wait: true })).status, 200)
    const month = await run('failing')
    assert.deepEqual(month.json.error.details, {
      ...{ limit: 'runs', period: 'month', maximum: 3, until: '2026-06-01T00:00:00.000Z' },
    })
    assert.deepEqual(await limit('failing', { runs: { month: null } }), {
      in_flight: null,
      runs: { hour: 2 },
      spend_usd: {},
    })
    assert.equal((await run('failing')).status, 201)
    assert.deepEqual(await limit('failing', null), { in_flight: null, runs: {}, spend_usd: {} })
  })

  test('every item of a batch counts, and one that must be whole is refused with the room there is', async () => {
    const { limit, send } = await open()
    await limit('plain', { runs: { day: 2 } })
    const items = [{ prompt: 'a' }, { prompt: 'b' }, { prompt: 'c' }]
    const whole = await send('POST', '/plain/runs/batch', { items, mode: 'all_or_nothing' })
    assert.deepEqual([whole.status, whole.json.error.code, whole.json.error.details.room], [429, 'run_limit', 2])
    const part = await send('POST', '/plain/runs/batch', { items, mode: 'per_item' }, { 'idempotency-key': 'b' })
    assert.equal(part.status, 201, part.text)
    assert.deepEqual(
      part.json.items.map(({ error }: { error: { code: string } | null }) => error?.code ?? null),
      [null, null, 'run_limit'],
    )
    const again = await send('POST', '/plain/runs/batch', { items, mode: 'per_item' }, { 'idempotency-key': 'b' })
    assert.deepEqual([again.status, again.json.id], [201, part.json.id])
    assert.deepEqual((await send('GET', '/plain/usage')).json.limits.runs, { day: { now: 2, maximum: 2 } })
  })

  test('a budget counts what is set aside and then what was charged; a run that does not fit is refused as money', async () => {
    const { run, limit, send, untilEnded } = await open()
    await limit('gated', { spend_usd: { day: '0.006' } })
    const first = await run('gated')
    const refused = await run('gated')
    assert.deepEqual([refused.status, refused.json.error.code], [402, 'spend_limit'])
    assert.match(
      refused.json.error.message,
      /may spend \$0\.006 in one day, which does not cover this run; the next one begins/,
    )
    app.engine.openGate()
    await untilEnded(first.json.id)
    const { spend_usd: spend } = (await send('GET', '/gated/usage')).json.limits
    assert.deepEqual(spend, { day: { now: '0.001', maximum: '0.006' } })
    const second = await run('gated')
    assert.equal(second.status, 201)
    app.engine.openGate()
    await untilEnded(second.json.id)
  })

  test('limits that mean nothing are refused by their name', async () => {
    const { send } = await open()
    const refused = async (limits: unknown) => (await send('PATCH', '/plain', { limits })).json.error?.message
    assert.match(await refused({ in_flight: 0 }), /limits\.in_flight must be/)
    assert.match(await refused({ runs: { week: 1 } }), /week/)
    assert.match(await refused({ spend_usd: { day: '1.0000001' } }), /limits\.spend_usd\.day/)
    assert.match(await refused({ runs: { day: 1.5 } }), /limits\.runs\.day/)
    // What a price is belongs to those who run the service.
    assert.match((await send('PATCH', '/plain', { price: { kind: 'free' } })).json.error.message, /price/)
  })

  test('an operator sets what a run costs: held when it is taken, charged when it has succeeded, and nothing when it failed', async () => {
    const { run, price, balance, send, untilEnded, tenant } = await open()
    assert.equal((await price('plain', { kind: 'per_run', usd: '0.25' })).status, 200)
    assert.equal((await price('gated', { kind: 'per_second', usd: '0.01', max_seconds: 30 })).status, 200)
    assert.equal((await price('failing', { kind: 'per_run', usd: '0.25' })).status, 200)
    assert.deepEqual((await send('GET', '/gated')).json.price, { kind: 'per_second', usd: '0.01', max_seconds: 30 })
    await run('plain', { wait: true })
    assert.deepEqual([(await balance()).available_usd, (await balance()).held_usd], ['9.75', '0.00'])
    await run('failing', { wait: true })
    assert.equal((await balance()).available_usd, '9.75')
    const slow = (await run('gated')).json.id
    assert.equal((await balance()).held_usd, '0.30')
    await waitUntil(async () => (await tenant.call(`/api/v2/jobs/${slow}`)).json.status === 'running')
    clock.advance(45_000)
    app.engine.openGate()
    await untilEnded(slow)
    // 45 seconds, of which 30 are charged.
    assert.equal((await balance()).available_usd, '9.45')
    await price('plain', { kind: 'free' })
    await run('plain', { wait: true })
    assert.equal((await balance()).available_usd, '9.45')
    await price('plain', { kind: 'pool' })
    await run('plain', { wait: true })
    assert.equal((await balance()).available_usd, '9.449')
    const lines = (await app.admin('GET', `/audit?subject=${tenant.id}`)).json.records
    assert.equal(lines.filter(({ action }: { action: string }) => action === 'endpoint.price').length, 5)
    assert.equal((await price('nothing', { kind: 'free' })).status, 404)
    assert.equal((await price('plain', { kind: 'per_run' })).status, 422)
    assert.deepEqual((await app.admin('GET', '/ledger/check')).json.faults, [])
  })

  test('a trial tells the price and the wait, and what speaks against a run; it makes and counts nothing', async () => {
    const { price, limit, send } = await open()
    await price('plain', { kind: 'per_run', usd: '0.25' })
    const tried = await send('POST', '/plain/runs/validate', { inputs: { prompt: 'a' } })
    assert.equal(tried.status, 200, tried.text)
    assert.deepEqual(
      [tried.json.is_accepted, tried.json.price],
      [true, { hold_usd: '0.25', per_second_usd: '0.00', minimum_usd: '0.25' }],
    )
    assert.equal(typeof tried.json.wait.ahead, 'number')
    await limit('plain', { spend_usd: { ever: '0.20' } })
    await send('PATCH', '/plain', { state: 'stopped' })
    const complaints = (await send('POST', '/plain/runs/validate', { inputs: { prompt: 1, other: 1 } })).json.complaints
    assert.deepEqual(
      complaints.map(({ code }: { code: string }) => code),
      ['endpoint_stopped', 'invalid_input', 'spend_limit'],
    )
    const usage = (await send('GET', '/plain/usage')).json
    assert.deepEqual([usage.total.runs, usage.limits.spend_usd.ever.now], [0, '0.00'])
  })

  test('usage adds up runs, seconds and charges by day and by version, as JSON and as a table', async () => {
    const { run, send, untilEnded, tenant, price } = await open()
    const day = clock.now().toISOString().slice(0, 10)
    await run('plain', { wait: true })
    await run('failing', { wait: true })
    const file = { ...GRAPHS.plain, '4': node('FakeSource') }
    assert.equal((await send('POST', '/plain/versions', { file, declaration: DECLARATION })).status, 201)
    await run('plain', { wait: true })
    await price('gated', { kind: 'per_run', usd: '0.02' })
    const slow = (await run('gated')).json.id
    await waitUntil(async () => (await tenant.call(`/api/v2/jobs/${slow}`)).json.status === 'running')
    clock.advance(2500)
    app.engine.openGate()
    await untilEnded(slow)
    const nothing = {
      runs: 0,
      queued: 0,
      succeeded: 0,
      failed: 0,
      canceled: 0,
      expired: 0,
      running: 0,
      seconds: 0,
      usd: '0.00',
    }
    const usage = (await send('GET', `/plain/usage?from=${day}&by=version`)).json
    assert.deepEqual(usage.rows, [
      { ...nothing, key: '2', runs: 1, succeeded: 1, usd: '0.001' },
      { ...nothing, key: '1', runs: 1, succeeded: 1, usd: '0.001' },
    ])
    const gated = (await send('GET', `/gated/usage?from=${day}`)).json
    assert.deepEqual(gated.rows, [{ ...nothing, key: day, runs: 1, succeeded: 1, seconds: 2.5, usd: '0.02' }])
    assert.deepEqual(gated.total, { ...nothing, runs: 1, succeeded: 1, seconds: 2.5, usd: '0.02' })
    assert.equal((await send('GET', `/failing/usage?from=${day}`)).json.total.failed, 1)
    const table = await send('GET', `/gated/usage?from=${day}`, undefined, { accept: 'text/csv' })
    assert.equal(
      table.text,
      `day,runs,queued,running,succeeded,failed,canceled,expired,seconds,usd\r\n${day},1,0,0,1,0,0,0,2.5,0.02\r\n`,
    )
    assert.match(String(table.headers['content-type']), /^text\/csv/)
    for (const query of ['by=week', 'from=2026-02-30', 'tz=Nowhere', 'from=2026-01-01&to=2025-01-01'])
      assert.equal((await send('GET', `/plain/usage?${query}`)).status, 400, query)
    const account = (await tenant.call('/console/v1/usage?by=endpoint')).json
    assert.deepEqual(
      account.rows.map(({ key, usd }: { key: string | null; usd: string }) => [key, usd]),
      [
        ['gated', '0.02'],
        ['plain', '0.002'],
      ],
    )
  })

  describe('keys of some endpoints', () => {
    async function keyOf(tenant: Tenant, endpoints: readonly string[], more: object = {}) {
      const made = await app.admin('POST', `/accounts/${tenant.id}/keys`, { endpoints, ...more })
      assert.equal(made.status, 201, made.text)
      const ask = (method: string, path: string, body?: unknown) =>
        call(app.url, path, {
          method,
          headers: { authorization: `Bearer ${made.json.text}` },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        })
      return { made, ask }
    }
    const inputs = { prompt: 'a' }

    test('call and see these, and everything else is as if it were not there', async () => {
      const { tenant, run } = await open()
      const other = (await run('plain', { wait: true })).json.id
      const { made, ask } = await keyOf(tenant, ['gated', 'nothing'])
      assert.deepEqual(
        [made.json.scopes, made.json.endpoints],
        [
          ['endpoints:read', 'endpoints:run'],
          ['gated', 'nothing'],
        ],
      )
      const { json: list } = await ask('GET', '/api/v2/endpoints')
      assert.deepEqual(
        list.endpoints.map(({ name }: { name: string }) => name),
        ['gated'],
      )
      const known = await ask('GET', '/api/v2/endpoints/nobodys')
      for (const path of [
        '',
        '/schema',
        '/versions',
        '/versions/1',
        '/openapi.json',
        '/docs',
        '/export',
        '/usage',
        '/runs',
      ])
        assert.deepEqual(
          (await ask('GET', `/api/v2/endpoints/plain${path}`)).text,
          (await ask('GET', `/api/v2/endpoints/nobodys${path}`)).text,
        )
      assert.equal(known.status, 404)
      for (const path of ['', '/validate']) {
        const refused = await ask('POST', `/api/v2/endpoints/plain/runs${path}`, { inputs })
        assert.deepEqual([refused.status, refused.text], [404, known.text])
      }
      const document = await ask('GET', '/api/v2/endpoints/openapi.json')
      assert.ok(!document.text.includes('plain'))
      assert.equal((await ask('GET', `/api/v2/endpoints/plain/runs/${other}`)).status, 404)
      assert.equal((await ask('GET', `/api/v2/jobs/${other}`)).status, 403)
      assert.equal((await ask('POST', '/api/v2/endpoints', { name: 'gated', file: GRAPHS.plain })).status, 403)
      const mine = await ask('POST', '/api/v2/endpoints/gated/runs', { inputs })
      assert.equal(mine.status, 201)
      app.engine.openGate()
      await waitUntil(
        async () => (await ask('GET', `/api/v2/endpoints/gated/runs/${mine.json.id}`)).json.status === 'succeeded',
      )
    })

    test('are kept to them by the doors of other services, too', async () => {
      const { tenant, run, send } = await open()
      const other = (await run('plain', { wait: true })).json.id
      const version = (await send('GET', '/plain/versions/1')).json.hash.replace('sha256:', '')
      const { ask } = await keyOf(tenant, ['gated'])
      const { json: models } = await ask('GET', '/v1/models')
      assert.deepEqual(
        models.data.map(({ id }: { id: string }) => id),
        ['gated'],
      )
      const refused = [
        await ask('GET', '/v1/models/plain'),
        await ask('POST', '/v1/images/generations', { model: 'plain', prompt: 'a' }),
        await ask('GET', `/replicate/v1/models/${tenant.id}/plain`),
        await ask('POST', `/replicate/v1/models/${tenant.id}/plain/predictions`, { input: inputs }),
        await ask('POST', '/replicate/v1/predictions', { version, input: inputs }),
        await ask('POST', '/replicate/v1/predictions', { version: 'plain', input: inputs }),
        await ask('GET', `/replicate/v1/predictions/${other}`),
        await ask('POST', `/replicate/v1/predictions/${other}/cancel`),
      ]
      assert.deepEqual(statuses(refused), Array(8).fill(404))
      assert.deepEqual((await ask('GET', '/replicate/v1/predictions')).json.results, [])
    })

    test('that name a version get it without asking, and no other', async () => {
      const { tenant, send } = await open()
      const file = { ...GRAPHS.plain, '4': node('FakeSource') }
      await send('POST', '/plain/versions', { file, declaration: DECLARATION })
      await send('PUT', '/plain/aliases/production', { version: 1 })
      const { ask } = await keyOf(tenant, ['plain@production'])
      const versionOf = async (reference: string) => {
        const { status, json } = await ask('POST', `/api/v2/endpoints/${reference}/runs`, { inputs })
        return status === 201 ? json.endpoint.version : status
      }
      assert.deepEqual(
        [await versionOf('plain'), await versionOf('plain@production'), await versionOf('plain@1')],
        [1, 1, 1],
      )
      assert.deepEqual([await versionOf('plain@2'), await versionOf('plain@latest')], [404, 404])
      const { json } = await ask('GET', '/api/v2/endpoints/plain/versions')
      assert.deepEqual(
        json.versions.map(({ version }: { version: number }) => version),
        [1],
      )
      await send('PUT', '/plain/aliases/production', { version: 2 })
      assert.deepEqual([await versionOf('plain'), await versionOf('plain@1')], [2, 404])
      await send('DELETE', '/plain/aliases/production')
      assert.equal(await versionOf('plain'), 404)
    })

    test('are not made with what contradicts them', async () => {
      const { tenant } = await open()
      const make = async (body: object) => {
        const { status, json } = await app.admin('POST', `/accounts/${tenant.id}/keys`, body)
        return [status, json.error?.field]
      }
      assert.deepEqual(await make({ endpoints: ['plain'], scopes: ['endpoints:run'] }), [201, undefined])
      assert.deepEqual(await make({ endpoints: ['plain'], scopes: ['endpoints:run', 'jobs:read'] }), [422, 'scopes'])
      assert.deepEqual(await make({ endpoints: ['plain'], scopes: ['endpoints:write'] }), [422, 'scopes'])
      for (const endpoints of [[], ['Plain'], ['a@'], ['../x'], Array(51).fill('a')])
        assert.equal((await make({ endpoints }))[0], 422, JSON.stringify(endpoints))
      const own = await tenant.call('/console/v1/keys', {
        method: 'POST',
        body: JSON.stringify({ name: 'shop', endpoints: ['plain'] }),
      })
      assert.deepEqual(
        [own.status, own.json.key.endpoints, own.json.key.scopes],
        [201, ['plain'], ['endpoints:read', 'endpoints:run']],
      )
    })
  })
})
