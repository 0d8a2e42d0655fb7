/** For each card and model: the fake's scenario, and what has to come of it (see `inShort` in cards.test.ts). */
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../support/providers/fake-providers/byteplus.ts'
import {
  anthropicFake,
  elevenlabsFake,
  ideogramFake,
  openaiFake,
  openrouterFake,
  recraftFake,
  stabilityFake,
} from '../../support/providers/fake-providers/direct.ts'
import type { FakeCard } from '../../support/providers/fake-providers/fake-card.ts'
import { geminiFake, veoFake } from '../../support/providers/fake-providers/google.ts'
import { klingFake } from '../../support/providers/fake-providers/kling.ts'
import { lumaFake, secondLumaFake } from '../../support/providers/fake-providers/luma.ts'
import { minimaxFake } from '../../support/providers/fake-providers/minimax.ts'
import {
  falFake,
  higgsfieldFake,
  replicateFake,
  runwareFake,
  wanFake,
  wavespeedFake,
  xaiFake,
} from '../../support/providers/fake-providers/queues.ts'
import { runwayFake } from '../../support/providers/fake-providers/runway.ts'

export interface CardCases {
  readonly card: FakeCard
  readonly settings?: Readonly<Record<string, string>>
  readonly models: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const FINE = 'finished 1'
/** What every model must do: succeed, wait for a busy provider, and not mind a state that nobody has told us about. */
const TASK = { success: FINE, rate: FINE, 'unknown state': FINE }
const DIRECT = { success: FINE, rate: FINE }

export const CARDS: readonly CardCases[] = [
  {
    card: bflFake,
    models: {
      'bfl/flux-2-pro': {
        ...TASK,
        policy: 'policy 200 ended 1',
        'output moderated': 'policy 200 ended 1',
        invalid: 'invalid 422 none 0',
        failure: 'failed 200 ended 1',
        'not found': 'failed 200 ended 1',
        'no output': 'failed 200 ended 1',
        arrears: 'failed 402 none 0',
        down: 'failed 503 possible 0',
        'odd spelling': FINE,
        'other field': FINE,
        'no poll url': FINE,
        'poll trouble': FINE,
        'poll too fast': FINE,
        'poll url elsewhere': 'failed null possible 1',
      },
      'bfl/flux-kontext-pro': { success: FINE, policy: 'policy 200 ended 1' },
      'bfl/erase-v1': { success: FINE },
    },
  },
  {
    card: byteplusFake,
    models: {
      'byteplus/seedream-4-5-251128': {
        ...DIRECT,
        policy: 'policy 400 ended 0',
        'each refused': 'policy 200 ended 0',
        invalid: 'invalid 400 none 0',
        overdue: 'failed 403 none 0',
        failure: 'failed 500 ended 0',
      },
      'byteplus/dreamina-seedance-2-0-260128': {
        ...TASK,
        policy: 'policy 400 ended 0',
        'late policy': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
        expired: 'timeout 200 ended 1',
        cleared: 'failed 200 ended 1',
      },
    },
  },
  {
    card: klingFake,
    models: {
      'kling/kling-v2-6': {
        ...TASK,
        policy: 'policy 400 ended 0',
        'policy inside success': 'policy 200 ended 0',
        'late policy': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        arrears: 'failed 429 none 0',
        failure: 'failed 500 possible 0',
        'late failure': 'failed 200 ended 1',
        'empty element': 'failed 200 ended 1',
        'newer word': FINE,
      },
      'kling/kling-image-o1': { success: FINE },
    },
  },
  {
    card: geminiFake,
    models: {
      'vertexai/gemini-2.5-flash-image': {
        ...DIRECT,
        policy: 'policy 200 ended 0',
        'output policy': 'policy 200 ended 0',
        'policy as invalid': 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        failure: 'failed 500 ended 0',
        'no image': 'failed 200 ended 0',
        denied: 'failed 403 none 0',
      },
      'vertexai/imagen-3.0-generate-002': { success: FINE, 'imagen policy': 'policy 200 ended 0' },
    },
  },
  {
    card: veoFake,
    settings: { project: 'p1' },
    models: {
      'veo/veo-3.1-generate-001': {
        ...TASK,
        policy: 'policy 200 ended 1',
        'policy as error': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
        fewer: FINE,
        stored: FINE,
      },
      'veo/veo-3.1-fast-generate-001': { success: FINE },
    },
  },
  {
    card: openaiFake,
    models: {
      'openai/gpt-image-1': {
        ...DIRECT,
        policy: 'policy 400 ended 0',
        'policy by text': 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        quota: 'failed 429 none 0',
        blocked: 'failed 403 none 0',
        failure: 'failed 500 ended 0',
        'no output': 'failed 200 ended 0',
        'no json': 'failed 200 ended 0',
      },
      'openai/gpt-5': { success: FINE },
    },
  },
  {
    card: lumaFake,
    models: {
      'luma/photon-1': {
        ...TASK,
        policy: 'policy 200 ended 1',
        'policy at submit': 'policy 400 ended 0',
        invalid: 'invalid 422 none 0',
        failure: 'failed 200 ended 1',
        'preview first': FINE,
        'only a preview': 'failed 200 ended 1',
      },
      'luma/ray-2': { success: FINE },
    },
  },
  {
    card: secondLumaFake,
    models: {
      'luma_2/uni-1': {
        ...TASK,
        policy: 'policy 200 ended 1',
        invalid: 'invalid 422 none 0',
        failure: 'failed 200 ended 1',
        budget: 'failed 200 ended 1',
      },
      'luma_2/uni-1-max': { success: FINE },
    },
  },
  {
    card: runwayFake,
    models: {
      'runway/gen4_turbo': {
        ...TASK,
        policy: 'policy 200 ended 1',
        'output policy': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        'bad asset': 'invalid 200 ended 1',
        failure: 'failed 200 ended 1',
        'no output': 'failed 200 ended 1',
        down: 'failed 502 possible 0',
      },
      'runway/gen4_image': { success: FINE },
    },
  },
  {
    card: minimaxFake,
    models: {
      'minimax/minimax-h3': {
        ...TASK,
        policy: 'policy 200 ended 1',
        'output policy': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
        expired: 'timeout 200 ended 1',
      },
      'minimax/minimax-hailuo-02': {
        ...TASK,
        policy: 'policy 200 ended 0',
        'late policy': 'policy 200 ended 1',
        invalid: 'invalid 200 none 0',
        balance: 'failed 200 none 0',
        failure: 'failed 200 none 0',
        'late failure': 'failed 200 ended 1',
      },
    },
  },
  {
    card: stabilityFake,
    models: {
      'stability/stable-image-core': {
        ...DIRECT,
        policy: 'policy 200 ended 0',
        'policy at the door': 'policy 403 ended 0',
        invalid: 'invalid 400 none 0',
        failure: 'failed 500 ended 0',
      },
      'stability/sd3.5-large': { success: FINE },
    },
  },
  {
    card: ideogramFake,
    models: {
      'ideogram/ideogram-v3': {
        ...DIRECT,
        policy: 'policy 422 ended 0',
        'policy inside success': 'policy 200 ended 0',
        'one unsafe': FINE,
        invalid: 'invalid 400 none 0',
        failure: 'failed 500 ended 0',
      },
      'ideogram/ideogram-4-5': { success: FINE },
    },
  },
  {
    card: recraftFake,
    models: {
      'recraft/recraftv4': {
        ...DIRECT,
        policy: 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        failure: 'failed 500 ended 0',
      },
      'recraft/recraftv4_styles': { success: FINE },
    },
  },
  {
    card: falFake,
    models: {
      'fal/fal-nano-banana-2': {
        ...TASK,
        policy: 'policy 422 ended 1',
        invalid: 'invalid 422 ended 1',
        timeout: 'timeout 504 ended 1',
        failure: 'failed 500 ended 1',
        'no output': 'failed 200 ended 1',
      },
      'fal/fal-seedance-2.0': { success: FINE },
      'fal/fal-seedance-2.5': { success: FINE },
      'fal/fal-gpt-image-2': { success: FINE },
      'fal/fal-nano-banana-pro': { success: FINE },
    },
  },
  {
    card: replicateFake,
    models: {
      'replicate/flux-schnell': {
        ...TASK,
        policy: 'policy 200 ended 1',
        invalid: 'invalid 422 none 0',
        'no funds': 'failed 402 none 0',
        failure: 'failed 200 ended 1',
        aborted: 'failed 200 ended 1',
        'poll url elsewhere': 'failed null possible 1',
      },
      'replicate/sdxl-lightning-4step': { success: FINE },
    },
  },
  {
    card: elevenlabsFake,
    models: {
      'elevenlabs/eleven_v3': {
        ...DIRECT,
        policy: 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        'invalid list': 'invalid 422 none 0',
        quota: 'failed 401 none 0',
        failure: 'failed 500 ended 0',
        'no output': 'failed 200 ended 0',
      },
      'elevenlabs/eleven_sfx_v2': { success: FINE },
    },
  },
  {
    card: xaiFake,
    models: {
      'xai/grok-imagine-image': {
        ...DIRECT,
        policy: 'policy 200 ended 0',
        'policy without data': 'policy 200 ended 0',
        invalid: 'invalid 400 none 0',
        failure: 'failed 500 ended 0',
        'empty list': 'failed 200 ended 0',
      },
      'xai/grok-imagine-video': {
        ...TASK,
        policy: 'policy 200 ended 1',
        failure: 'failed 200 ended 1',
        expired: 'timeout 200 ended 1',
        'no state': FINE,
      },
    },
  },
  {
    card: wanFake,
    models: {
      'wan/wan2.5-t2v-preview': {
        ...TASK,
        policy: 'policy 400 ended 0',
        'late policy': 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
      },
      'wan/wan2.5-t2i-preview': { success: FINE, 'element refused': 'policy 200 ended 1' },
    },
  },
  {
    card: wavespeedFake,
    models: {
      'wavespeed/seedvr2': {
        ...TASK,
        policy: 'policy 200 ended 1',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
      },
      'wavespeed/ultimate-image-upscaler': { success: FINE },
      'wavespeed/wavespeed-gpt-image-2.5-flare': { success: FINE },
      'wavespeed/wavespeed-gpt-image-2.5-sunburst': { success: FINE },
      'wavespeed/wavespeed-nano-banana-2': { success: FINE },
      'wavespeed/wavespeed-nano-banana-pro': { success: FINE },
      'wavespeed/wavespeed-seedance-2.0': { success: FINE, policy: 'policy 200 ended 1' },
    },
  },
  {
    card: runwareFake,
    models: {
      'runware/runware-gpt-image-2': {
        ...DIRECT,
        policy: 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        down: 'failed 503 possible 0',
      },
      'runware/runware-gpt-image-2.5-flare': { success: FINE },
      'runware/runware-gpt-image-2.5-sunburst': { success: FINE },
      'runware/runware-nano-banana-2': { success: FINE },
      'runware/runware-nano-banana-pro': { success: FINE },
      'runware/runware-seedance-2.0': {
        ...TASK,
        policy: 'policy 400 ended 0',
        invalid: 'invalid 400 none 0',
        failure: 'failed 200 ended 1',
        'who knows': 'failed 200 possible 0',
      },
      'runware/runware-seedance-2.5': { success: FINE },
    },
  },
  {
    card: higgsfieldFake,
    models: {
      'higgsfield/higgsfield-kling-3-std': {
        ...TASK,
        policy: 'policy 200 ended 1',
        invalid: 'invalid 422 none 0',
        failure: 'failed 200 ended 1',
      },
      'higgsfield/higgsfield-seedance-2.0': { success: FINE },
      'higgsfield/higgsfield-seedance-2.5': { success: FINE },
    },
  },
  {
    card: anthropicFake,
    models: {
      'anthropic/claude-sonnet-4-6': { ...DIRECT, invalid: 'invalid 400 none 0', failure: 'failed 500 ended 0' },
    },
  },
  {
    card: openrouterFake,
    models: {
      'openrouter/chat-completions': {
        ...DIRECT,
        policy: 'policy 403 ended 0',
        invalid: 'invalid 400 none 0',
        'no funds': 'failed 402 none 0',
        'failure inside success': 'failed 200 ended 0',
        failure: 'failed 500 ended 0',
        'no output': 'failed 200 ended 0',
      },
    },
  },
]
