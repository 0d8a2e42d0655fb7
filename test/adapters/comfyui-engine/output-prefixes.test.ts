/**
 * Prefixes of output files: brackets, letters of all scripts, spaces, dots, percent signs, slashes. What ComfyUI 0.33 makes of each, by
 * its own function, stands in a fixture; the built-in engine names files alike, and so does a server that is given our folder.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import { readPrefix } from '../../../engine/files/output-name.ts'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { rewriteGraph, toGivenName, withoutFolder } from '../../../src/adapters/engines/comfyui/run/rewrite-graph.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

type Named = readonly [subfolder: string, name: string]

const PREFIXES = JSON.parse(
  readFileSync(new URL('../../fixtures/output-prefixes.json', import.meta.url), 'utf8'),
) as readonly (readonly [prefix: string, named: Named | null])[]
const VALUES = { width: 64, height: 32, now: new Date() }

/** What a server does with a prefix; null: it refuses it. */
function onServer(prefix: string): Named | null {
  const path = posix.normalize(prefix.replaceAll('%width%', '64').replaceAll('%height%', '32')).replace(/(.)\/$/, '$1')
  if (path.startsWith('/') || path.startsWith('../')) return null
  return [path.includes('/') ? posix.dirname(path) : '', posix.basename(path)]
}

test('the rule by which the other tests think of a server is that of ComfyUI', () => {
  for (const [prefix, named] of PREFIXES) assert.deepEqual(onServer(prefix), named, JSON.stringify(prefix))
})

test('the built-in engine names files as ComfyUI does', () => {
  for (const [prefix, named] of PREFIXES) {
    if (named === null) {
      assert.throws(() => readPrefix(prefix, VALUES), /outside the output folder/, JSON.stringify(prefix))
      continue
    }
    const { subfolder, baseName } = readPrefix(prefix, VALUES)
    assert.deepEqual([subfolder, baseName], named, JSON.stringify(prefix))
  }
})

test('a server that is given our folder names files as it would without', () => {
  const folder = 'atelier/job-1-0a0b0c0d'
  const rewriting = { catalog: recordedCatalog(), staged: new Map(), folder, fresh: null }
  for (const [prefix, named] of PREFIXES) {
    const inputs = { images: ['1', 0], filename_prefix: prefix }
    const graph = rewriteGraph(readGraph({ '2': { class_type: 'SaveImage', inputs } }), rewriting)
    const given = onServer(String(graph.get('2')?.inputs['filename_prefix']))
    const shown = given === null ? null : [withoutFolder(given[0], folder), toGivenName(given[1])]
    assert.deepEqual(shown, named, JSON.stringify(prefix))
    const isOwn = given !== null && (given[0] === folder || given[0].startsWith(`${folder}/`))
    assert.ok(isOwn || named === null, `${prefix} is saved in the folder of its run`)
  }
})
