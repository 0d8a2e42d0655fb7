import { test } from 'node:test'
import { openRig, type Rig, type RigOptions } from './job-rig.ts'

/** A test over a rig of its own, which is closed whatever happens. */
export function jobTest(name: string, body: (rig: Rig) => Promise<void>, options: RigOptions = {}): void {
  test(name, async () => {
    const rig = await openRig(options)
    try {
      await body(rig)
    } finally {
      await rig.close()
    }
  })
}
