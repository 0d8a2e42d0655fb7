import { test } from 'node:test'
import { cutAndKillUpload } from './upload-kills.ts'

test('cuts and kills lose nothing of an upload but what was on its way', async () => {
  // Slow enough that something happens while it is sent: the client tells how far it is ten times a second.
  await cutAndKillUpload({ megabytes: 24, cuts: 3, kills: 2, bytesPerMs: 5_000 })
})
