import { test } from 'node:test'
import { killAndCheck } from './kill-and-check.ts'

test('nothing acknowledged is lost when the server is killed again and again under load', async () => {
  await killAndCheck({ kills: 5, seed: 20_261_115 })
})
