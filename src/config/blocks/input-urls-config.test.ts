import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { cwd, inFolder, load, refusal } from '../test/config-rig.ts'

const OFF = { isPublic: false, hosts: [], origins: [], isForJobs: false }
const urlsOf = (text: string) => load({ flags: { inputUrls: text } }).config.inputUrls

test('files are fetched from any public host where there are accounts, and not at all otherwise', () => {
  assert.deepEqual(load({}).config.inputUrls, OFF)
  for (const kind of ['cloud', 'serverless'])
    assert.deepEqual(load({ flags: { kind } }).config.inputUrls, { ...OFF, isPublic: true })
  assert.deepEqual(load({ flags: { kind: 'cloud', inputUrls: 'off' } }).config.inputUrls, OFF)
})

test('the list has words, hosts and whole origins', () => {
  assert.deepEqual(urlsOf('public'), { ...OFF, isPublic: true })
  assert.deepEqual(urlsOf('jobs, public'), { ...OFF, isPublic: true, isForJobs: true })
  assert.deepEqual(urlsOf('CDN.example.com,.r2.example, http://minio:9000,https://[::1]:8443,jobs'), {
    isPublic: false,
    hosts: ['cdn.example.com', '.r2.example'],
    origins: ['http://minio:9000', 'https://[::1]:8443'],
    isForJobs: true,
  })
})

test('a mistake in the list is refused', () => {
  const mistakes = [
    ...['', 'jobs', 'off,public', 'minio', 'cdn.example.com:8443', '*', '*.example.com', 'cdn.example.com/files'],
    ...['http://minio:9000/files', 'http://user@minio:9000', 'ftp://minio', '.com.', '10.0.0.1/8'],
  ]
  for (const text of mistakes) assert.match(refusal({ flags: { inputUrls: text } }), /^inputUrls /, text)
})

test('an object, in the config file or in a file of its own, may hold headers for hosts, which are never shown', () => {
  const headers = { 'files.example.com': { Authorization: 'Bearer geheim' } }
  const object = { from: ['files.example.com', 'jobs'], headers }
  writeFileSync(path.join(cwd, 'urls.json'), JSON.stringify(object))
  for (const loaded of [load({ cwd: inFolder({ inputUrls: object }) }), load({ flags: { inputUrls: 'urls.json' } })]) {
    assert.deepEqual(loaded.config.inputUrls, { ...OFF, hosts: ['files.example.com'], isForJobs: true })
    assert.deepEqual(JSON.parse(loaded.secrets.inputHeaders?.reveal() ?? ''), headers)
    assert.doesNotMatch(inspect(loaded, { depth: null }) + JSON.stringify(loaded), /geheim/)
  }
  assert.equal(load({ cwd: inFolder({ inputUrls: { headers } }) }).config.inputUrls.isPublic, true)
  for (const wrong of [
    { from: 5 },
    { from: 'jobs' },
    { hosts: ['a.example'] },
    { headers: { 'a.example': 'geheim' } },
    { headers: { 'https://a.example': {} } },
    { headers: { 'a.example': { 'bad name': 'geheim' } } },
    { headers: { 'a.example': { authorization: 'geheim\r\nx: y' } } },
  ]) {
    const message = refusal({ cwd: inFolder({ inputUrls: wrong }) })
    assert.match(message, /inputUrls/)
    assert.doesNotMatch(message, /geheim/)
  }
  assert.match(refusal({ flags: { inputUrls: JSON.stringify(object) } }), /command line/)
})

test('the limits of the router are one object, and count under their former names', () => {
  const limitsOf = ({ config }: ReturnType<typeof load>) => {
    const { maxCalls, spendCeilingMicros, requestsPerMinute } = config.router
    return [maxCalls, spendCeilingMicros, requestsPerMinute]
  }
  assert.deepEqual(limitsOf(load({})), [null, null, null])
  assert.deepEqual(limitsOf(load({ cwd: inFolder({ routerLimits: { maxCalls: 5, rate: '60' } }) })), [5, null, 60])
  const former = { env: { ATELIER_ROUTER_RATE: '7' }, flags: { routerMaxCalls: '2', routerSpendCeiling: '1.50' } }
  assert.deepEqual(limitsOf(load(former)), [2, 1_500_000, 7])
  assert.match(refusal({ cwd: inFolder({ routerLimits: { maxCall: 5 } }) }), /unknown member "maxCall"; did you mean/)
  for (const value of [0, 1.5, 'many', null, [5]])
    assert.match(refusal({ cwd: inFolder({ routerLimits: { rate: value } }) }), /^rate of routerLimits = /)
  assert.match(refusal({ flags: { routerRate: '0' } }), /^routerRate = "0" \(from --router-rate\) /)
})
