/** ComfyUI's folders of models, and which inputs of loaders name files in them. Where a folder lies on a disk is not known here. */

/** In ComfyUI's order, with the loader whose choices are the files of each. */
export const MODEL_FOLDERS: Readonly<Record<string, readonly [classType: string, inputName: string] | null>> = {
  checkpoints: ['CheckpointLoaderSimple', 'ckpt_name'],
  configs: null,
  loras: ['LoraLoader', 'lora_name'],
  vae: ['VAELoader', 'vae_name'],
  text_encoders: ['CLIPLoader', 'clip_name'],
  diffusion_models: ['UNETLoader', 'unet_name'],
  clip_vision: ['CLIPVisionLoader', 'clip_name'],
  style_models: ['StyleModelLoader', 'style_model_name'],
  embeddings: null,
  diffusers: ['DiffusersLoader', 'model_path'],
  vae_approx: null,
  controlnet: ['ControlNetLoader', 'control_net_name'],
  gligen: ['GLIGENLoader', 'gligen_name'],
  upscale_models: ['UpscaleModelLoader', 'model_name'],
  latent_upscale_models: ['LatentUpscaleModelLoader', 'model_name'],
  custom_nodes: null,
  datasets: null,
  hypernetworks: ['HypernetworkLoader', 'hypernetwork_name'],
  photomaker: ['PhotoMakerLoader', 'photomaker_model_name'],
  classifiers: null,
  model_patches: ['ModelPatchLoader', 'name'],
  audio_encoders: ['AudioEncoderLoader', 'audio_encoder_name'],
  background_removal: null,
  frame_interpolation: null,
  geometry_estimation: null,
  optical_flow: null,
  detection: null,
}

/** Folders of code and settings: no model browser shows them, and no weights are put there. */
export const FOLDERS_WITHOUT_WEIGHTS: readonly string[] = ['configs', 'custom_nodes']

// Names of inputs that mean the same folder in whatever class they stand: loaders of other authors follow ComfyUI's.
const BY_INPUT: Readonly<Record<string, string>> = {
  ckpt_name: 'checkpoints',
  lora_name: 'loras',
  vae_name: 'vae',
  unet_name: 'diffusion_models',
  clip_name: 'text_encoders',
  control_net_name: 'controlnet',
  style_model_name: 'style_models',
  gligen_name: 'gligen',
  hypernetwork_name: 'hypernetworks',
  photomaker_model_name: 'photomaker',
  audio_encoder_name: 'audio_encoders',
}

const BY_LOADER = new Map(
  Object.entries(MODEL_FOLDERS).flatMap(([folder, loader]) => (loader === null ? [] : [[loader.join('.'), folder]])),
)

/** The folder whose files an input picks from; null: not known. `DualCLIPLoader.clip_name2` is numbered. */
export function folderOfInput(classType: string, input: string): string | null {
  const plain = input.replace(/_?\d+$/, '')
  return BY_LOADER.get(`${classType}.${input}`) ?? (Object.hasOwn(BY_INPUT, plain) ? (BY_INPUT[plain] ?? null) : null)
}
