/** Partner nodes of many providers: pictures, films that are polled for, nodes that hand files over, and texts; with their cost. */
import { bflFake } from '../providers/fake-providers/bfl.ts'
import { byteplusFake } from '../providers/fake-providers/byteplus.ts'
import { ideogramFake, openaiFake, recraftFake, stabilityFake } from '../providers/fake-providers/direct.ts'
import type { FakeCard } from '../providers/fake-providers/fake-card.ts'
import { geminiFake, veoFake } from '../providers/fake-providers/google.ts'
import { klingFake } from '../providers/fake-providers/kling.ts'
import { lumaFake } from '../providers/fake-providers/luma.ts'
import { wanFake } from '../providers/fake-providers/queues.ts'
import { runwayFake } from '../providers/fake-providers/runway.ts'
import { type PartnerStep, PICTURE } from './partner-graphs.ts'

export interface PricedStep extends PartnerStep {
  readonly card: FakeCard
  /** As the call is recorded: `provider/model@route`. */
  readonly model: string
  readonly usd: string
  /** The provider works on it while the node asks again and again. */
  readonly isPolled: boolean
}

function step(card: FakeCard, name: string, [route, usd]: readonly [string, string], inputs = {}): PricedStep {
  return { card, class: name, inputs, model: `${card.provider}/${route}`, usd, isPolled: false }
}

function task(...about: Parameters<typeof step>): PricedStep {
  return { ...step(...about), isPolled: true }
}

export const PARTNER_STEPS: readonly PricedStep[] = [
  task(bflFake, 'FluxProUltraImageNode', ['flux-pro-1.1-ultra@generate', '0.06']),
  task(bflFake, 'FluxProFillNode', ['flux-pro-1.0-fill@generate', '0.05']),
  step(openaiFake, 'OpenAIDalle3', ['dall-e-3@images', '0.04']),
  step(openaiFake, 'OpenAIGPTImage1', ['gpt-image-1@edits', '0.1665'], { image: PICTURE, model: 'gpt-image-1' }),
  step(openaiFake, 'OpenAIChatNode', ['o4-mini@responses', '0.000026'], { model: 'o4-mini' }),
  task(openaiFake, 'OpenAIVideoSora2', ['sora-2@videos', '0.80']),
  step(geminiFake, 'GeminiNode', ['gemini-2.5-pro@gemini', '0.012912'], { model: 'gemini-2.5-pro' }),
  step(geminiFake, 'GeminiImageNode', ['gemini-2.5-flash-image@gemini', '0.038703'], { images: PICTURE }),
  task(veoFake, 'Veo3VideoGenerationNode', ['veo-3.0-generate-001@generate', '1.60'], {
    model: 'veo-3.0-generate-001',
  }),
  task(klingFake, 'KlingTextToVideoWithAudio', ['kling-v2-6@text2video', '0.70']),
  task(klingFake, 'KlingOmniProImageToVideoNode', ['kling-video-o1@omni-video', '0.336']),
  task(klingFake, 'KlingOmniProVideoToVideoNode', ['kling-video-o1@omni-video', '0.504']),
  task(klingFake, 'KlingImageGenerationNode', ['kling-v2@images', '0.014']),
  step(byteplusFake, 'ByteDanceSeedreamNode', ['seedream-4-5-251128@images', '0.04'], { image: PICTURE }),
  task(byteplusFake, 'ByteDanceTextToVideoNode', ['seedance-1-0-pro-fast-251015@tasks', '0.05']),
  task(byteplusFake, 'ByteDanceImageToVideoNode', ['seedance-1-0-pro-fast-251015@tasks', '0.05']),
  task(lumaFake, 'LumaImageNode', ['photon-1@image', '0.016']),
  task(lumaFake, 'LumaVideoNode', ['ray-2@video', '0.40']),
  task(lumaFake, 'LumaImageToVideoNode', ['ray-2@video', '0.40'], { first_image: PICTURE }),
  task(runwayFake, 'RunwayImageToVideoNodeGen4', ['gen4_turbo@image-to-video', '0.25']),
  task(runwayFake, 'RunwayTextToImageNode', ['gen4_image@text-to-image', '0.08']),
  step(ideogramFake, 'IdeogramV3', ['ideogram-v3@v3-generate', '0.06']),
  step(recraftFake, 'RecraftTextToImageNode', ['recraftv3@images', '0.04']),
  step(recraftFake, 'RecraftTextToVectorNode', ['recraftv3@images', '0.08']),
  step(recraftFake, 'RecraftCrispUpscaleNode', ['crispupscale@crispUpscale', '0.004']),
  step(stabilityFake, 'StabilityStableImageUltraNode', ['stable-image-ultra@ultra', '0.08']),
  step(stabilityFake, 'StabilityUpscaleFastNode', ['upscale-fast@upscale-fast', '0.02']),
  task(stabilityFake, 'StabilityUpscaleCreativeNode', ['upscale-creative@upscale-creative', '0.60']),
  task(wanFake, 'WanTextToImageApi', ['wan2.5-t2i-preview@text-to-image', '0.03']),
  task(wanFake, 'WanTextToVideoApi', ['wan2.6-t2v@video', '0.50']),
  task(wanFake, 'WanImageToVideoApi', ['wan2.6-i2v@video', '0.50']),
]
