import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { RewrittenNames } from '../metadata/rewritten-names.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { createReporter } from './report-outputs.ts'

const FOLDER = 'atelier/job-1-0a0b0c0d'

function openReporter(first: number) {
  let next = first
  return createReporter({
    // Nothing is read, and nobody is asked whether a file is there.
    api: {} as ComfyApi,
    bounds: {} as ComfyBounds,
    names: () => ({}) as RewrittenNames,
    async reserveOutputNumbers(_folder, _prefix, count) {
      next += count
      return next - count
    },
    folder: FOLDER,
    cleanup: { reported() {}, async released() {}, isRemoved: () => false },
    isDoubted: false,
    isSameServer: () => true,
    onUnreadable() {},
  })
}

const file = (filename: string, subfolder = FOLDER) => ({ filename, subfolder, type: 'output' })

test('files that share a stem on the server share one here, whatever reported them', async () => {
  const report = openReporter(7)
  const namesOf = (told: Awaited<ReturnType<typeof report>>) =>
    Object.values(told)
      .flat()
      .map((item) => (item.kind === 'file' ? item.filename : item.value))
  const one = await report({
    images: [file('gif_00001_.gif'), file('gif_00002_.gif')],
    '3d': [file('gif_00001_.glb')],
  })
  assert.deepEqual(namesOf(one), ['gif_00007_.gif', 'gif_00008_.gif', 'gif_00007_.glb'])
  const other = await report({ text: [file('gif_00002_.txt'), file('gif_00003_.txt')] })
  assert.deepEqual(namesOf(other), ['gif_00008_.txt', 'gif_00009_.txt'])
  const below = await report({ images: [file('é[1]_00001_.png', `${FOLDER}/sub`), file('é[1]_00001.mp4')] })
  assert.deepEqual(namesOf(below), ['é[1]_00010_.png', 'é[1]_00011.mp4'])
})
