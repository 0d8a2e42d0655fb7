/** A workflow that every built-in engine runs within a second and that leaves a picture. */
export const EXAMPLE_WORKFLOW = `{
  "1": {
    "class_type": "EmptyImage",
    "inputs": { "width": 512, "height": 512, "batch_size": 1, "color": 15761536 },
    "_meta": { "title": "Orange" }
  },
  "2": {
    "class_type": "EmptyImage",
    "inputs": { "width": 256, "height": 256, "batch_size": 1, "color": 2003199 },
    "_meta": { "title": "Blue" }
  },
  "3": {
    "class_type": "ImageBlend",
    "inputs": { "image1": ["1", 0], "image2": ["2", 0], "blend_factor": 0.5, "blend_mode": "screen" },
    "_meta": { "title": "Both" }
  },
  "4": {
    "class_type": "SaveImage",
    "inputs": { "images": ["3", 0], "filename_prefix": "colour-card" },
    "_meta": { "title": "Save" }
  }
}`
