import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { cwd, inFolder, load, refusal } from '../test/config-rig.ts'

const SECRET = `whsec_${Buffer.from('geheim-geheim-geheim-geheim').toString('base64')}`
const HOOK = { url: 'https://moderator.example.com/run', secret: SECRET }

test('no hook is asked unless the setting names one', () => {
  const { config, secrets } = load()
  assert.deepEqual(
    [config.moderation.beforeRun, config.moderation.beforeOutputs, secrets.moderation],
    [null, null, null],
  )
})

test('hooks stand in the config file or in a file of their own, and their secrets are never shown', () => {
  const object = {
    before_run: HOOK,
    before_outputs: { ...HOOK, secret: [SECRET, SECRET], deadline: '20s', at_once: 4 },
  }
  writeFileSync(path.join(cwd, 'moderation.json'), JSON.stringify(object))
  for (const loaded of [
    load({ cwd: inFolder({ moderation: object }) }),
    load({ flags: { moderation: 'moderation.json' } }),
  ]) {
    const { url } = HOOK
    assert.deepEqual(loaded.config.moderation, {
      ...{ coversJobs: false, serviceUrl: null },
      beforeRun: { url, deadlineMs: 5000, onFailure: 'refuse', atOnce: 32 },
      beforeOutputs: { url, deadlineMs: 20_000, onFailure: 'refuse', atOnce: 4 },
    })
    assert.equal(JSON.parse(loaded.secrets.moderation?.reveal() ?? '').before_outputs.length, 2)
    assert.doesNotMatch(inspect(loaded, { depth: null }) + JSON.stringify(loaded), /whsec_/)
  }
  assert.match(refusal({ flags: { moderation: JSON.stringify(object) } }), /command line/)
})

test('plain http leads only to this machine and to origins that are listed', () => {
  const accepts = (url: string, more: object = {}) =>
    load({ cwd: inFolder({ moderation: { ...more, before_run: { ...HOOK, url } } }) }).config.moderation.beforeRun?.url
  assert.equal(accepts('http://127.0.0.1:9/x'), 'http://127.0.0.1:9/x')
  assert.equal(accepts('http://[::1]:9/x'), 'http://[::1]:9/x')
  assert.equal(accepts('http://m:8/x', { http_origins: ['http://m:8'] }), 'http://m:8/x')
  for (const url of [
    'http://m:8/x',
    'http://127.0.0.1.example.com/',
    'ftp://127.0.0.1/',
    'https://u:p@m.example/',
    'x',
    7,
  ])
    assert.match(refusal({ cwd: inFolder({ moderation: { before_run: { ...HOOK, url } } }) }), /"before_run.url"/)
})

test('a mistake is refused, without showing a secret', () => {
  const mistakes: readonly [object, RegExp][] = [
    [{}, /names no hook/],
    [{ before_run: { ...HOOK, secret: undefined } }, /"before_run.secret"/],
    [{ before_run: { ...HOOK, secret: 'geheim' } }, /"before_run.secret"/],
    [{ before_run: { ...HOOK, secret: [SECRET, SECRET, SECRET] } }, /"before_run.secret"/],
    [{ before_run: { ...HOOK, deadline: '61s' } }, /"before_run.deadline"/],
    [{ before_outputs: { ...HOOK, on_failure: 'ignore' } }, /"before_outputs.on_failure"/],
    [{ before_outputs: { ...HOOK, at_once: 0 } }, /"before_outputs.at_once"/],
    [{ before_outputs: { ...HOOK, timeout: '5s' } }, /unknown member "before_outputs.timeout"/],
    [{ before_outputs: 'https://moderator.example.com' }, /"before_outputs" of moderation must be an object/],
    [{ before_run: HOOK, scope: 'some' }, /"scope"/],
    [{ before_run: HOOK, service_url: 'ftp://x' }, /"service_url"/],
    [{ before_run: HOOK, http_origins: 'x' }, /"http_origins"/],
    [{ after_run: HOOK }, /unknown member "after_run"/],
  ]
  for (const [moderation, says] of mistakes) {
    const message = refusal({ cwd: inFolder({ moderation }) })
    assert.match(message, says)
    assert.doesNotMatch(message, /geheim|whsec_[A-Z0-9]/i)
  }
})
