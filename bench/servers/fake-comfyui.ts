/** A ComfyUI server without computation, as the engine under a fleet. */
import { startFakeComfy } from '../../test/support/engines/fake-comfyui/fake-comfyui.ts'
import { readSettings, reportToParent } from '../kit/server-child.ts'

const fake = await startFakeComfy(readSettings())
reportToParent(fake.url.href.replace(/\/$/, ''), { close: async () => fake[Symbol.asyncDispose]() })
