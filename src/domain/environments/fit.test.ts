import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BuildTarget } from './definition.ts'
import { cudaOfDriver, runsOnDriver, targetOfClass, whyNoEngine } from './fit.ts'

const NVIDIA: BuildTarget = { os: 'linux', gpu: 'nvidia' }
const CPU: BuildTarget = { os: 'linux', gpu: 'cpu' }
const ready = (target: BuildTarget, variant: string) => ({
  ...{ target, status: 'ready' as const },
  lock: {
    ...{ torch: { variant, version: null }, python: '3.12', packs: [], wheels: '', models: [] },
    comfyui: { wanted: 'v1', commit: null, sha256: '' },
  },
})

test('a driver runs the CUDA of its time and older ones, and what needs none runs everywhere', () => {
  const versions = ['580.65.06', '570.86.15', '525.60.13', '470.1', '390.1', 'unknown']
  assert.deepEqual(versions.map(cudaOfDriver), [13, 12, 12, 11, null, null])
  const variants = ['cu130', 'cu128', 'cu118', 'cpu', 'rocm6.4']
  assert.deepEqual(
    variants.filter((variant) => runsOnDriver(variant, 12)),
    ['cu128', 'cu118', 'cpu', 'rocm6.4'],
  )
  assert.ok(variants.every((variant) => runsOnDriver(variant, null)))
})

test('engines of a class are started from what was built for its platform, or the reason says what to do', () => {
  const here = { targets: [NVIDIA, CPU], cuda: 12 }
  assert.deepEqual(
    ['rtx-4090', 'nvidia', 'cpu', 'amd'].map((name) => targetOfClass(name, here)),
    [NVIDIA, NVIDIA, CPU, NVIDIA],
  )
  assert.equal(targetOfClass('rtx-4090', { targets: [CPU] }), null)
  assert.equal(whyNoEngine([ready(NVIDIA, 'cu128')], 'rtx-4090', here), null)
  assert.match(
    whyNoEngine([ready(CPU, 'cpu')], 'rtx-4090', here) ?? '',
    /built for linux\/cpu, and class rtx-4090 needs linux\/nvidia; cut the release for that target, too/,
  )
  assert.match(whyNoEngine([ready(NVIDIA, 'cu128')], 'cpu', here) ?? '', /class cpu needs linux\/cpu/)
  assert.match(whyNoEngine([], 'cpu', here) ?? '', /built for nothing yet/)
  assert.match(
    whyNoEngine([ready(NVIDIA, 'cu130')], 'nvidia', here) ?? '',
    /torch is for cu130, and the driver here runs CUDA 12 at most; choose another base image/,
  )
  assert.match(
    whyNoEngine([ready(NVIDIA, 'cu130')], 'nvidia', { ...here, targets: [CPU] }) ?? '',
    /cannot be started here/,
  )
})
