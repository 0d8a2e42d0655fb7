import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'

function load(flags: Readonly<Record<string, unknown>>, env: Readonly<Record<string, string>> = {}) {
  return loadConfig({ flags, env, cwd: import.meta.dirname }).config
}

function refusal(flags: Readonly<Record<string, unknown>>): string {
  try {
    load(flags)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
  assert.fail('the configuration was accepted')
}

describe('a fleet', () => {
  test('is the built-in engine alone when nothing is configured', () => {
    const { fleet } = load({})
    assert.deepEqual([fleet.urls, fleet.launches, fleet.hasEmbedded], [[], [], true])
  })

  test('is the named servers, with as many workers as they take jobs together', () => {
    const { fleet, jobs } = load({ comfyui: ['http://gpu1:8188/', 'https://gpu2/comfy'], comfyuiConcurrency: '2' })
    assert.deepEqual(fleet.urls, ['http://gpu1:8188', 'https://gpu2/comfy'])
    assert.equal(fleet.hasEmbedded, false)
    assert.equal(jobs.workers, 4)
    assert.equal(load({ comfyui: 'http://gpu1:8188', embedded: 'on' }).fleet.hasEmbedded, true)
  })

  test('is launched from commands, each as often as configured; a command may contain commas', () => {
    const command = 'python main.py --port {port} --cuda-device {index} --args a,b'
    const { fleet } = load({ comfyuiLaunch: [command, 'other {port}'], comfyuiCount: '2' })
    assert.deepEqual(fleet.launches, [
      'python main.py --port {port} --cuda-device 0 --args a,b',
      'python main.py --port {port} --cuda-device 1 --args a,b',
      'other {port}',
      'other {port}',
    ])
    assert.equal(load({}, { ATELIER_COMFYUI_LAUNCH: `${command}\nother {port}` }).fleet.launches.length, 2)
  })

  test('with settings that contradict each other is refused with one line that says what to do', () => {
    assert.match(refusal({ comfyui: 'gpu1:8188' }), /no http\(s\) address; give for example http:\/\/gpu1:8188/)
    const leaky = refusal({ comfyui: 'http://me:secret@gpu1:8188' })
    assert.match(leaky, /user name or password/)
    assert.doesNotMatch(leaky, /secret/)
    assert.match(refusal({ comfyui: ['http://gpu1:8188', 'http://gpu1:8188/'] }), /twice/)
    assert.match(refusal({ comfyuiLaunch: 'python main.py' }), /without \{port\}/)
    assert.match(refusal({ embedded: 'off' }), /leaves no engine/)
    assert.match(refusal({ recycleAfter: '10' }), /servers that we start, and there are none/)
    assert.match(refusal({ comfyui: 'http://gpu1', comfyuiCount: '3' }), /servers that we start/)
  })
})
