/** `atelier/nodes`: what modules with nodes of one's own are written with. */
import { load } from './program.js'

export const {
  NODE_MARK,
  anything,
  audio,
  boolean,
  choice,
  defineNode,
  float,
  image,
  int,
  latent,
  mask,
  newTensor,
  ofType,
  optional,
  seed,
  string,
} = load('engine/custom/nodes-api')
