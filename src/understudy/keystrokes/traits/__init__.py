"""What typing profiles reveal and teach: inference of a label, and what coarser profiles preserve."""
