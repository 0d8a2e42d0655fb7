/** Latents resized; sizes are given in pixels of the picture. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { PLANE_METHODS, planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import { scaledBy, withOpenSide } from '../../tensor/resize/target-size.ts'
import { factorInputs, sizeInputs } from '../geometry/resize-inputs.ts'
import { LATENT_SCALE, latent, withSamples } from './latent.ts'

const LEAST_SIDE = 64

export const latentUpscale = defineNode({
  classType: 'LatentUpscale',
  displayName: 'Upscale Latent',
  category: 'model/latent',
  description: 'Resizes latents to a picture size; 0 for one side keeps the aspect.',
  style: 'classic',
  required: { samples: latent(), ...sizeInputs(PLANE_METHODS, 8) },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples: { samples }, width, height }) =>
    costOf(samples.data.length + samples.shape[0] * samples.shape[1] * ((width * height) / LATENT_SCALE ** 2)),
  run({ samples: given, upscale_method: method, width, height, crop }, context) {
    const target = withOpenSide(planeSize(given.samples), { width, height }, LEAST_SIDE)
    if (target === null) return { outputs: [given] }
    const cells = {
      width: Math.floor(target.width / LATENT_SCALE),
      height: Math.floor(target.height / LATENT_SCALE),
    }
    return { outputs: [withSamples(given, resizePlanes(given.samples, { ...cells, method, crop }, context))] }
  },
})

export const latentUpscaleBy = defineNode({
  classType: 'LatentUpscaleBy',
  displayName: 'Upscale Latent By',
  category: 'model/latent',
  description: 'Resizes latents by a factor.',
  style: 'classic',
  required: { samples: latent(), ...factorInputs(PLANE_METHODS, 1.5) },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples: { samples }, scale_by: factor }) => costOf(samples.data.length * Math.max(1, factor * factor)),
  run({ samples: given, upscale_method: method, scale_by: factor }, context) {
    const cells = scaledBy(planeSize(given.samples), factor)
    const resized = resizePlanes(given.samples, { ...cells, method, crop: 'disabled' }, context)
    return { outputs: [withSamples(given, resized)] }
  },
})
