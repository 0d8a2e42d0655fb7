/** The doors of the two packages lead to the same names in a checkout and when they are installed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as ownPackage from '@atelier/engine'
import * as ownNodes from '@atelier/engine/nodes'
import * as nodes from '../../engine/custom/nodes-api.ts'
import * as engine from '../../engine/index.ts'

test('`atelier/engine`, `atelier/nodes` and the engine as a package of its own export everything that their sources do', async () => {
  const doors: [string, object][] = [
    ['atelier/engine', engine],
    ['atelier/nodes', nodes],
  ]
  for (const [name, source] of doors) {
    const door = (await import(name)) as Record<string, unknown>
    assert.deepEqual(Object.keys(door).sort(), Object.keys(source).sort(), name)
    for (const [key, value] of Object.entries(source)) assert.equal(door[key], value, key)
  }
  assert.equal(ownPackage.openEngine, engine.openEngine)
  assert.equal(ownNodes.defineNode, nodes.defineNode)
})
